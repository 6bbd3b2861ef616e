#include "analysis/timeline/power_fit.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kRows = 8;  // of a column that are computed at once
using RowBlock = Eigen::Array<double, kRows, 1>;

}  // namespace

BandedSystem::BandedSystem(std::size_t n, std::size_t band)
    : n_(n),
      band_(std::max(band, kNear - 1)),
      height_(band_ + kRows),
      fixed_(n * (band_ + 1), 0.0),
      fixed_right_(n, 0.0),
      near_(n),
      right_(n + height_, 0.0),
      factor_(n * height_, 0.0) {}

void BandedSystem::add(std::size_t first, std::span<const double> factor, double value,
                       double weight) {
  for (std::size_t i = 0; i < factor.size(); ++i) {
    if (factor[i] == 0) continue;
    fixed_right_[first + i] += weight * factor[i] * value;
    for (std::size_t j = 0; j <= i; ++j) {
      fixed_[(first + j) * (band_ + 1) + i - j] += weight * factor[i] * factor[j];
    }
  }
}

void BandedSystem::reset_near() {
  for (std::size_t j = 0; j < n_; ++j) {
    std::copy_n(fixed_.begin() + static_cast<std::ptrdiff_t>(j * (band_ + 1)), kNear,
                near_[j].begin());
  }
  std::ranges::copy(fixed_right_, right_.begin());
}

std::vector<double> BandedSystem::solve() {
  for (std::size_t j = 0; j < n_; ++j) {
    decompose(j);
    const double* const column = &factor_[j * height_];
    const double x = right_[j] /= column[0];
    for (std::size_t i = 1; i <= band_; ++i) right_[j + i] -= column[i] * x;
  }
  std::fill(right_.begin() + static_cast<std::ptrdiff_t>(n_), right_.end(), 0.0);
  for (std::size_t j = n_; j-- > 0;) {
    const double* const column = &factor_[j * height_];
    double x = right_[j];
    for (std::size_t i = band_; i > 0; --i) x -= column[i] * right_[j + i];
    right_[j] = x / column[0];
  }
  return {right_.begin(), right_.begin() + static_cast<std::ptrdiff_t>(n_)};
}

// Column j of the factor, from the columns before. Below the band, columns hold zeros, so that
// each block of rows takes whole blocks of them.
void BandedSystem::decompose(std::size_t j) {
  double* const column = &factor_[j * height_];
  std::copy_n(near_[j].begin(), kNear, column);
  std::copy_n(fixed_.begin() + static_cast<std::ptrdiff_t>(j * (band_ + 1) + kNear),
              band_ + 1 - kNear, column + kNear);
  double pivot = 0;
  for (std::size_t first = 0; first <= band_; first += kRows) {
    Eigen::Map<RowBlock> target(column + first);
    RowBlock rows = target;
    const std::size_t row = j + first;
    for (std::size_t k = row > band_ ? row - band_ : 0; k < j; ++k) {
      const double* const before = &factor_[k * height_];
      rows -= Eigen::Map<const RowBlock>(before + (row - k)) * before[j - k];
    }
    if (first == 0) pivot = std::sqrt(std::max(rows[0], 1e-12));
    rows /= pivot;
    target = rows;
  }
  column[0] = pivot;
  std::fill(column + band_ + 1, column + height_, 0.0);
}

namespace {

// In time constants. The truncation error differs between the ends of a mean, and is amplified by
// (time constant / averaging window): with 3.5, a burst at the limit changed 140 W to 94 W.
constexpr double kLookBack = 6;

struct Place {
  std::size_t knot;  // at or before
  double fraction;   // of the way to the next
};

// `from`: a knot before `t`, or the first.
Place place(const std::vector<double>& knots, double t, std::size_t from) {
  std::size_t i = from;
  while (i + 2 < knots.size() && knots[i + 1] <= t) ++i;
  return {i, std::clamp((t - knots[i]) / (knots[i + 1] - knots[i]), 0.0, 1.0)};
}

// A row of the system: factors of the energies at knots from `first` on.
struct Row {
  std::size_t first = 0;
  std::vector<double> factor;

  Row(std::size_t from, std::size_t last) : first(from), factor(last - from + 1, 0.0) {}
  void add(std::size_t knot, double value) { factor[knot - first] += value; }
};

// Rows of observed energies. Close times follow one another, so that knots are searched from there.
class Rows {
 public:
  explicit Rows(const std::vector<double>& knots) : knots_(knots) {}

  // The energy in [begin, end].
  Row between(double begin, double end, double time_constant) {
    find_first(begin, time_constant);
    const Place from = place(knots_, begin, first_);
    const Place to = place(knots_, end, from.knot);
    Row row(first_, to.knot + 1);
    add(begin, from, time_constant, -1, row);
    add(end, to, time_constant, 1, row);
    return row;
  }

  // The energy up to t.
  Row up_to(double t, double time_constant) {
    find_first(t, time_constant);
    const Place at = place(knots_, t, first_);
    Row row(first_, at.knot + 1);
    add(t, at, time_constant, 1, row);
    return row;
  }

 private:
  bool is_past(std::size_t knot, double t, double time_constant) const {
    return t - knots_[knot] > kLookBack * time_constant;
  }

  // The last knot, of those with a cell, that the energy up to t depends on no more; or the first.
  void find_first(double t, double time_constant) {
    if (!is_past(first_, t, time_constant)) first_ = 0;
    while (first_ + 2 < knots_.size() && is_past(first_ + 1, t, time_constant)) ++first_;
  }

  // Adds `times` the observed energy up to t.
  void add(double t, const Place& at, double time_constant, double times, Row& row) const {
    row.add(at.knot, times * (1 - at.fraction));
    row.add(at.knot + 1, times * at.fraction);
    if (time_constant <= 0) return;
    // y(t): each cell's power, with its exponentially decayed weight.
    double weight_at_end = 1;
    for (std::size_t c = at.knot + 1; c-- > 0;) {
      const bool last = c == 0 || is_past(c, t, time_constant);
      const double weight_at_begin = last ? 0.0 : std::exp(-(t - knots_[c]) / time_constant);
      const double watts =
          times * time_constant * (weight_at_end - weight_at_begin) / (knots_[c + 1] - knots_[c]);
      row.add(c + 1, -watts);
      row.add(c, watts);
      if (last) return;
      weight_at_end = weight_at_begin;
    }
  }

  const std::vector<double>& knots_;
  std::size_t first_ = 0;
};

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

  // The rows of means and points.
  struct Reading {
    Row row;
    double value, weight;
  };
  std::vector<Reading> readings;
  readings.reserve(p.means.size() + p.points.size());
  std::size_t band = 2;
  const auto take = [&](Row row, double value, double weight) {
    band = std::max(band, row.factor.size() - 1);
    readings.push_back({std::move(row), value, weight});
  };
  Rows of_means(p.knots);
  for (const auto& m : p.means) {
    const double length = m.end - m.begin;
    take(of_means.between(m.begin, m.end, p.time_constant), (m.watts - reference) * length,
         1.0 / (m.sigma * m.sigma * length * length));
  }
  Rows of_points(p.knots);
  for (const auto& q : p.points) {
    const double time_constant = q.seen ? p.time_constant : 0.0;
    take(of_points.up_to(q.at, time_constant),
         q.joules - reference * (q.at - time_constant - origin), 1.0 / (q.sigma * q.sigma));
  }
  BandedSystem system(n, band);
  for (const auto& r : readings) system.add(r.row.first, r.row.factor, r.value, r.weight);
  // Without points the energy's origin is free: it is 0 at the first knot.
  system.add(0, std::array{1.0}, 0.0, p.points.empty() ? 1.0 : 1e-9);

  std::vector<double> watts = first_guess(p, reference);
  std::vector<double> joules;
  const double noise = p.noise_watts * p.noise_watts;
  std::vector<char> held(n, 0);  // cells at the floor; they stay there
  for (int round = 0; round < std::max(p.rounds, 1); ++round) {
    system.reset_near();
    for (std::size_t k = 1; k + 1 < n; ++k) {
      const double before = 1.0 / (p.knots[k] - p.knots[k - 1]);
      const double after = 1.0 / (p.knots[k + 1] - p.knots[k]);
      const double change = watts[k] - watts[k - 1];
      double weight = 1.0 / (change * change + noise);
      if (!p.usual_jump.empty() && p.usual_jump[k] > 0) {
        weight = std::min(weight, 1.0 / (p.usual_jump[k] * p.usual_jump[k]));
      }
      system.add_near(k - 1, std::array{before, -before - after, after}, 0.0, weight);
    }
    for (std::size_t c = 0; c + 1 < n; ++c) {
      if (round > 0 && watts[c] + reference < p.floor_watts) held[c] = 1;
      if (!held[c]) continue;
      const double per = 1.0 / (p.knots[c + 1] - p.knots[c]);
      system.add_near(c, std::array{-per, per}, p.floor_watts - reference, 1.0 / noise);
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
