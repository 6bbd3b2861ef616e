#include "analysis/timeline/power_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace jouleprof::analysis {
namespace {

// In time constants. The truncation error differs between the ends of a mean, and is amplified by
// (time constant / averaging window): with 3.5, a burst at the limit changed 140 W to 94 W.
constexpr double kLookBack = 6;

// Symmetric positive definite normal equations, solved by banded Cholesky decomposition.
class BandedSystem {
 public:
  BandedSystem(std::size_t n, std::size_t band)
      : n_(n), width_(band + 1), a_(n * width_, 0.0), b_(n, 0.0) {}

  // Adds weight * (row . x - value)^2, the row being `factor` from index `first` on.
  void add(std::size_t first, std::span<const double> factor, double value, double weight) {
    for (std::size_t i = 0; i < factor.size(); ++i) {
      if (factor[i] == 0) continue;
      b_[first + i] += weight * factor[i] * value;
      for (std::size_t j = 0; j <= i; ++j) {
        at(first + i, first + j) += weight * factor[i] * factor[j];
      }
    }
  }

  std::vector<double> solve() {
    decompose();
    std::vector<double> x = b_;
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t first = i + 1 > width_ ? i + 1 - width_ : 0;
      for (std::size_t k = first; k < i; ++k) x[i] -= at(i, k) * x[k];
      x[i] /= at(i, i);
    }
    for (std::size_t i = n_; i-- > 0;) {
      x[i] /= at(i, i);
      const std::size_t first = i + 1 > width_ ? i + 1 - width_ : 0;
      for (std::size_t k = first; k < i; ++k) x[k] -= at(i, k) * x[i];
    }
    return x;
  }

 private:
  // Column by column, four rows at a time: their sums don't wait for each other. Each element
  // subtracts its products in the order of columns.
  void decompose() {
    for (std::size_t j = 0; j < n_; ++j) {
      const double pivot = at(j, j) = std::sqrt(std::max(rest(j, j), 1e-12));
      const std::size_t end = std::min(j + width_, n_);
      std::size_t i = j + 1;
      for (; i + 4 <= end; i += 4) {
        const std::size_t common = first_of(i + 3);
        double s0 = rest(i, j, common);
        double s1 = rest(i + 1, j, common);
        double s2 = rest(i + 2, j, common);
        double s3 = rest(i + 3, j, common);
        const double* const pivots = &at(j, common);
        const double* const r0 = &at(i, common);
        const double* const r1 = &at(i + 1, common);
        const double* const r2 = &at(i + 2, common);
        const double* const r3 = &at(i + 3, common);
        for (std::size_t k = 0; k < j - common; ++k) {
          s0 -= r0[k] * pivots[k];
          s1 -= r1[k] * pivots[k];
          s2 -= r2[k] * pivots[k];
          s3 -= r3[k] * pivots[k];
        }
        at(i, j) = s0 / pivot;
        at(i + 1, j) = s1 / pivot;
        at(i + 2, j) = s2 / pivot;
        at(i + 3, j) = s3 / pivot;
      }
      for (; i < end; ++i) at(i, j) = rest(i, j) / pivot;
    }
  }

  std::size_t first_of(std::size_t row) const { return row + 1 > width_ ? row + 1 - width_ : 0; }

  // The element without its products of columns below `end`.
  double rest(std::size_t i, std::size_t j, std::size_t end) {
    double sum = at(i, j);
    for (std::size_t k = first_of(i); k < end; ++k) sum -= at(i, k) * at(j, k);
    return sum;
  }
  double rest(std::size_t i, std::size_t j) { return rest(i, j, j); }

  double& at(std::size_t i, std::size_t j) { return a_[i * width_ + (width_ - 1 - (i - j))]; }

  std::size_t n_;
  std::size_t width_;
  std::vector<double> a_;
  std::vector<double> b_;
};

struct Place {
  std::size_t knot;  // at or before
  double fraction;   // of the way to the next
};

Place place(const std::vector<double>& knots, double t) {
  auto next = std::upper_bound(knots.begin(), knots.end(), t);
  const auto last = static_cast<std::ptrdiff_t>(knots.size()) - 2;
  const std::ptrdiff_t k = std::clamp<std::ptrdiff_t>(next - knots.begin() - 1, 0, last);
  const auto i = static_cast<std::size_t>(k);
  return {i, std::clamp((t - knots[i]) / (knots[i + 1] - knots[i]), 0.0, 1.0)};
}

// A row of the system: factors of the energies at knots from `first` on. Kept between readings: its
// memory is allocated once.
class Row {
 public:
  explicit Row(std::size_t knots) : factor_(knots, 0.0) {}

  void clear() {
    if (first_ >= end_) return;
    std::fill(factor_.begin() + static_cast<std::ptrdiff_t>(first_),
              factor_.begin() + static_cast<std::ptrdiff_t>(end_), 0.0);
    first_ = factor_.size();
    end_ = 0;
  }
  void add(std::size_t knot, double value) {
    first_ = std::min(first_, knot);
    end_ = std::max(end_, knot + 1);
    factor_[knot] += value;
  }
  std::size_t first() const { return first_; }
  std::span<const double> factors() const {
    return std::span(factor_).subspan(first_, end_ - first_);
  }

 private:
  std::vector<double> factor_;  // of each knot; 0 outside of [first_, end_)
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

// Adds `times` the observed energy up to t.
void add_energy_seen(const std::vector<double>& knots, double t, double time_constant, double times,
                     Row& row) {
  const Place at = place(knots, t);
  row.add(at.knot, times * (1 - at.fraction));
  row.add(at.knot + 1, times * at.fraction);
  if (time_constant <= 0) return;
  // y(t): each cell's power, with its exponentially decayed weight.
  double weight_at_end = 1;
  for (std::size_t c = at.knot + 1; c-- > 0;) {
    const bool last = c == 0 || t - knots[c] > kLookBack * time_constant;
    const double weight_at_begin = last ? 0.0 : std::exp(-(t - knots[c]) / time_constant);
    const double watts =
        times * time_constant * (weight_at_end - weight_at_begin) / (knots[c + 1] - knots[c]);
    row.add(c + 1, -watts);
    row.add(c, watts);
    if (last) return;
    weight_at_end = weight_at_begin;
  }
}

// Interpolated samples: the power of each cell from which reweighting starts.
std::vector<double> first_guess(const FitProblem& p, double reference) {
  std::vector<double> watts(p.knots.size() - 1, 0.0);
  std::size_t i = 0;
  for (std::size_t c = 0; c < watts.size() && !p.means.empty(); ++c) {
    const double t = 0.5 * (p.knots[c] + p.knots[c + 1]);
    const auto centre = [&](std::size_t m) {
      return 0.5 * (p.means[m].begin + p.means[m].end) - p.time_constant;
    };
    while (i + 1 < p.means.size() && centre(i + 1) <= t) ++i;
    double w = p.means[i].watts;
    if (i + 1 < p.means.size() && t > centre(i)) {
      const double f = (t - centre(i)) / (centre(i + 1) - centre(i));
      w += f * (p.means[i + 1].watts - w);
    }
    watts[c] = w - reference;
  }
  return watts;
}

}  // namespace

std::vector<double> fit_energy(const FitProblem& p) {
  const std::size_t n = p.knots.size();
  const double origin = p.knots.front();
  // The unknowns are differences from a constant power, so that constant readings have no rounding
  // error.
  const double reference = p.means.empty() ? 0.0 : p.means.front().watts;

  // The rows of means and points, one after the other in `factors`.
  struct Reading {
    std::size_t first, factors;  // the first knot; how many factors
    double value, weight;
  };
  std::vector<Reading> readings;
  readings.reserve(p.means.size() + p.points.size());
  std::vector<double> factors;
  Row row(n);
  std::size_t band = 2;
  const auto take = [&](double value, double weight) {
    const auto of_row = row.factors();
    band = std::max(band, of_row.size() - 1);
    readings.push_back({row.first(), of_row.size(), value, weight});
    factors.insert(factors.end(), of_row.begin(), of_row.end());
  };
  for (const auto& m : p.means) {
    const double length = m.end - m.begin;
    row.clear();
    add_energy_seen(p.knots, m.begin, p.time_constant, -1, row);
    add_energy_seen(p.knots, m.end, p.time_constant, 1, row);
    take((m.watts - reference) * length, 1.0 / (m.sigma * m.sigma * length * length));
  }
  for (const auto& q : p.points) {
    const double time_constant = q.seen ? p.time_constant : 0.0;
    row.clear();
    add_energy_seen(p.knots, q.at, time_constant, 1, row);
    take(q.joules - reference * (q.at - time_constant - origin), 1.0 / (q.sigma * q.sigma));
  }
  BandedSystem fixed(n, band);
  auto left = std::span<const double>(factors);
  for (const auto& r : readings) {
    fixed.add(r.first, left.first(r.factors), r.value, r.weight);
    left = left.subspan(r.factors);
  }
  // Without points the energy's origin is free: it is 0 at the first knot.
  fixed.add(0, std::array{1.0}, 0.0, p.points.empty() ? 1.0 : 1e-9);

  std::vector<double> watts = first_guess(p, reference);
  std::vector<double> joules;
  const double noise = p.noise_watts * p.noise_watts;
  std::vector<char> held(n, 0);  // cells at the floor; they stay there
  BandedSystem system = fixed;
  for (int round = 0; round < std::max(p.rounds, 1); ++round) {
    if (round > 0) system = fixed;  // into the same memory
    for (std::size_t k = 1; k + 1 < n; ++k) {
      const double before = 1.0 / (p.knots[k] - p.knots[k - 1]);
      const double after = 1.0 / (p.knots[k + 1] - p.knots[k]);
      const double change = watts[k] - watts[k - 1];
      double weight = 1.0 / (change * change + noise);
      if (!p.usual_jump.empty() && p.usual_jump[k] > 0) {
        weight = std::min(weight, 1.0 / (p.usual_jump[k] * p.usual_jump[k]));
      }
      system.add(k - 1, std::array{before, -before - after, after}, 0.0, weight);
    }
    for (std::size_t c = 0; c + 1 < n; ++c) {
      if (round > 0 && watts[c] + reference < p.floor_watts) held[c] = 1;
      if (!held[c]) continue;
      const double per = 1.0 / (p.knots[c + 1] - p.knots[c]);
      system.add(c, std::array{-per, per}, p.floor_watts - reference, 1.0 / noise);
    }
    joules = system.solve();
    for (std::size_t c = 0; c + 1 < n; ++c) {
      watts[c] = (joules[c + 1] - joules[c]) / (p.knots[c + 1] - p.knots[c]);
    }
  }
  for (std::size_t k = 0; k < n; ++k) joules[k] += reference * (p.knots[k] - origin);
  for (std::size_t k = 1; k < n; ++k) joules[k] = std::max(joules[k], joules[k - 1]);
  return joules;
}

}  // namespace jouleprof::analysis
