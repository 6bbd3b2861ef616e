#include "analysis/timeline/sensors/counter_edges.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

constexpr double kShortestLattice = 0.02;  // below, the middle of a read is as good
constexpr std::size_t kFitReads = 400;     // that the phase is fitted to
constexpr double kAlone = 5;               // periods from a read to the next that has an edge

struct Read {
  double before = 0;
  double after = 0;
  double joules = 0;
};

// A lattice and the reads that may lie on it.
class Lattice {
 public:
  Lattice(std::span<const CounterPoint> points, double period, const PowerShape* shape,
          TimeBase time)
      : period_(period),
        latest_(kErrors.latest_visible * std::min(period / 0.1, 1.0)),
        shape_(shape) {
    if (shape_ && shape_->samples().size() < 3) shape_ = nullptr;
    for (const auto& p : points) {
      reads_.push_back({time.seconds_of(p.before), time.seconds_of(p.after), p.energy.joules()});
    }
    if (shape_ && reads_.back().after - reads_.front().after > 1.0) {
      const double back = 0.5 * latest_;
      const double sampled =
          shape_->integral(reads_.front().after - back, reads_.back().after - back);
      const double counted = reads_.back().joules - reads_.front().joules;
      // Either end may be an update off: a smaller difference is no difference in scale. An update
      // there has another energy than the mean one where power varies.
      double update = sampled * period_ / (reads_.back().after - reads_.front().after);
      for (const auto* end : {&reads_.front(), &reads_.back()}) {
        const double from = end->after - back;
        update = std::max({update, shape_->integral(from - period_, from),
                           shape_->integral(from, from + period_)});
      }
      const bool differs = std::abs(counted - sampled) > 1.5 * update;
      if (sampled > 0 && counted > 0 && differs) ratio_ = std::clamp(counted / sampled, 0.2, 5.0);
    }
  }

  double latest() const { return latest_; }  // that an update becomes visible after its edge
  bool has_shape() const { return shape_ != nullptr; }

  // Spans short enough to hold one update.
  std::size_t sightings() const {
    std::size_t n = 0;
    for (std::size_t i = 1; i < reads_.size(); ++i) n += is_sighting(i);
    return n;
  }

  // The period, if the sightings say clearly that it is another than was thought.
  double refined_period() const {
    std::vector<double> seen;
    for (std::size_t i = 1; i < reads_.size(); ++i) {
      if (is_sighting(i)) seen.push_back(0.5 * (reads_[i - 1].before + reads_[i].after));
    }
    if (seen.size() < 30) return period_;
    const double span = seen.back() - seen.front();
    const double step = std::max(0.2 * period_ * period_ / span, 1e-5 * period_);
    const auto agreement = [&](double period) {
      std::complex<double> sum;
      for (const double t : seen) {
        sum += std::polar(1.0, 2 * std::numbers::pi * std::fmod(t, period) / period);
      }
      return std::abs(sum) / static_cast<double>(seen.size());
    };
    const double as_thought = agreement(period_);
    double best = as_thought;
    double period = period_;
    for (double p = 0.98 * period_; p < 1.02 * period_; p += step) {
      const double a = agreement(p);
      if (a > best) best = a, period = p;
    }
    return best > as_thought + 0.2 ? period : period_;
  }
  void set_period(double period) { period_ = period; }

  // The edge of each read; absent where it is ambiguous.
  std::vector<std::optional<long>> assign(double phase, double* penalty = nullptr) const {
    // From the first read that leaves no doubt. Where each does, from either edge of the first one:
    // what follows agrees with one of them.
    std::size_t start = 0;
    while (start < reads_.size() &&
           candidates(start, phase).first != candidates(start, phase).second)
      ++start;
    if (start == reads_.size()) start = 0;
    const auto [low, high] = candidates(start, phase);
    std::vector<std::optional<long>> edges;
    double least = 0;
    for (long edge = high; edge >= low; --edge) {
      double disagreement = 0;
      auto found = assign_from(start, edge, phase, disagreement);
      if (edges.empty() || disagreement < least) edges = std::move(found), least = disagreement;
    }
    if (penalty) *penalty += least;
    return edges;
  }

  double log_likelihood(double phase) const {
    double sum = 0;
    for (std::size_t i = reads_.size() > kFitReads ? reads_.size() - kFitReads : 1;
         i < reads_.size(); ++i) {
      if (!is_sighting(i)) continue;
      // The share of the delays that an update may have which falls into the span.
      const double a = reads_[i - 1].before - phase;
      const double b = reads_[i].after - phase;
      double share = 0;
      for (double edge = std::floor((a - latest_) / period_) * period_; edge <= b;
           edge += period_) {
        share += std::max(std::min(b, edge + latest_) - std::max(a, edge), 0.0) / latest_;
      }
      sum += std::log(std::max(share, 1e-2));
    }
    return sum - disagreement(phase);
  }

  // Whether the samples clearly disagree with a phase that is some milliseconds off.
  bool shape_decides(double phase) const {
    if (!has_shape()) return false;
    const double off = 0.25 * latest_;
    return std::min(disagreement(phase - off), disagreement(phase + off)) > disagreement(phase) + 3;
  }

  const std::vector<Read>& reads() const { return reads_; }

  // The first and last edge whose value read `i` may have shown.
  std::pair<long, long> candidates(std::size_t i, double phase) const {
    return {std::lround(std::floor((reads_[i].before - latest_ - phase) / period_)),
            std::lround(std::floor((reads_[i].after - phase) / period_))};
  }

 private:
  bool is_sighting(std::size_t i) const {
    return reads_[i].joules > reads_[i - 1].joules &&
           reads_[i].after - reads_[i - 1].before < 0.6 * period_;
  }

  // Of the increments between edges with the samples; bounded for every read.
  double disagreement(double phase) const {
    double penalty = 0;
    if (has_shape()) assign(phase, &penalty);
    return penalty;
  }

  // A read, its edge, and the samples' energy up to that.
  struct Followed {
    std::size_t read = 0;
    long edge = 0;
    double sampled = 0;
  };

  double sampled_up_to(double t) const { return shape_ ? shape_->plain_energy(t) : 0; }

  Followed followed(std::size_t read, long edge, double phase) const {
    return {read, edge, sampled_up_to(phase + static_cast<double>(edge) * period_)};
  }

  // From a read with its edge, forward and back.
  std::vector<std::optional<long>> assign_from(std::size_t start, long edge, double phase,
                                               double& penalty) const {
    std::vector<std::optional<long>> edges(reads_.size());
    edges[start] = edge;
    for (const bool forward : {true, false}) {
      Followed last = followed(start, edge, phase);
      for (std::size_t i = start; forward ? ++i < reads_.size() : i-- > 0;) {
        if (const auto next = follow(last, i, phase, penalty)) {
          edges[i] = next->edge;
          last = *next;
        }
      }
    }
    return edges;
  }

  // The edge of read `i`, from that of another read.
  std::optional<Followed> follow(const Followed& from, std::size_t i, double phase,
                                 double& penalty) const {
    const auto [low, high] = candidates(i, phase);
    const double change = reads_[i].joules - reads_[from.read].joules;
    if (change == 0) {
      if (from.edge >= low && from.edge <= high) return Followed{i, from.edge, from.sampled};
      return std::nullopt;
    }
    const double elapsed = std::abs(reads_[i].after - reads_[from.read].after);
    if (!shape_ || elapsed > 20) {
      if (low == high) return followed(i, low, phase);
      const long next = from.edge + (i > from.read ? 1 : -1);
      if (elapsed < 1.5 * period_ && next >= low && next <= high) return followed(i, next, phase);
      return std::nullopt;
    }
    std::optional<Followed> best;
    double least = 0;
    for (long k = low; k <= high; ++k) {
      const Followed there = followed(i, k, phase);
      const double off = std::abs(change - ratio_ * (there.sampled - from.sampled));
      if (!best || off < least) best = there, least = off;
    }
    const double there = phase + static_cast<double>(best->edge) * period_;
    const double one_period = ratio_ * (best->sampled - sampled_up_to(there - period_));
    const double sigma =
        kErrors.increment_noise * std::abs(change) + kErrors.increment_least * one_period + 1e-6;
    penalty += std::min(std::log1p(least * least / (2 * sigma * sigma)), 6.0);
    if (low != high && least > 0.35 * one_period) return std::nullopt;
    return best;
  }

  double period_;
  double latest_;
  const PowerShape* shape_;
  double ratio_ = 1;
  std::vector<Read> reads_;
};

EdgePhase fit_phase(const Lattice& lattice, double period, double near,
                    const std::optional<EdgePhase>& before) {
  // Scanned about `near`, so that the phase is good where the reads are.
  double centre = near;
  double half = 0.5 * period;
  double prior_sigma = 0;
  if (before) {
    const double drift = kErrors.clock_drift * std::abs(near - before->edge) + kErrors.finest_phase;
    prior_sigma = std::hypot(before->sigma, drift);
    centre = before->edge + std::round((near - before->edge) / period) * period;
    half = std::min(half, std::max(4 * prior_sigma, kErrors.longest_phase));
  }
  const auto score = [&](double phase) {
    double s = lattice.log_likelihood(phase);
    if (before) s -= 0.5 * std::pow((phase - centre) / prior_sigma, 2);
    return s;
  };
  const auto scan = [&](double middle, double reach, double step, EdgePhase& out) {
    std::vector<double> at;
    std::vector<double> value;
    for (double x = middle - reach; x < middle + reach - 0.5 * step; x += step) {
      at.push_back(x);
      value.push_back(score(x));
    }
    const auto top = static_cast<std::size_t>(std::ranges::max_element(value) - value.begin());
    double weight = 0;
    double mean = 0;
    double square = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double w = std::exp(value[i] - value[top]);
      // The lattice repeats: distance goes the shorter way round.
      const double d = std::remainder(at[i] - at[top], period);
      weight += w;
      mean += w * d;
      square += w * d * d;
    }
    mean /= weight;
    out.edge = at[top] + mean;
    out.sigma = std::sqrt(std::max(square / weight - mean * mean, 0.0));
  };
  EdgePhase phase{period, centre, 0};
  const double coarse = std::min(0.002, period / 25);
  scan(centre, half, coarse, phase);
  if (phase.sigma < 2 * coarse) scan(phase.edge, 2 * coarse, coarse / 8, phase);
  phase.sigma = std::max(phase.sigma, kErrors.finest_phase);
  return phase;
}

// Reads whose edge is ambiguous, further than `reach` from all others that are placed. They are
// placed less well: where samples and counter disagree by more than an update, no edge fits, and
// without them the counter would be dropped because it disagrees.
std::vector<bool> alone(const std::vector<Read>& reads,
                        const std::vector<std::optional<long>>& edges, double reach) {
  std::vector<bool> out(reads.size(), true);
  for (const bool forward : {true, false}) {
    std::optional<double> placed;
    for (std::size_t n = 0; n < reads.size(); ++n) {
      const std::size_t i = forward ? n : reads.size() - 1 - n;
      if (edges[i]) {
        out[i] = false;
      } else if (placed && std::abs(reads[i].after - *placed) <= reach) {
        out[i] = false;
      }
      if (edges[i] || (forward && out[i])) placed = reads[i].after;
    }
  }
  return out;
}

}  // namespace

PlacedCounter place_counter(std::span<const CounterPoint> points, const model::SensorTraits& traits,
                            const PowerShape* shape, const std::optional<EdgePhase>& before,
                            TimeBase time) {
  PlacedCounter out;
  if (points.empty()) return out;
  const double refresh = traits.refresh ? seconds(*traits.refresh) : 0.0;

  if (refresh >= kShortestLattice) {
    Lattice lattice(points, before ? before->period : refresh, shape, time);
    double period = before ? before->period : refresh;
    if (!before) lattice.set_period(period = lattice.refined_period());
    const auto& reads = lattice.reads();
    if (before || lattice.has_shape() || lattice.sightings() >= 3) {
      const double near = reads[reads.size() / 2].after;
      EdgePhase phase = fit_phase(lattice, period, near, before);
      // Without samples, the delay from an edge to the first read that shows it is unknown.
      double unknown = 0.25 * lattice.latest();
      if (before) unknown = std::min(unknown, std::hypot(before->sigma, kErrors.finest_phase));
      if (!lattice.shape_decides(phase.edge)) phase.sigma = std::max(phase.sigma, unknown);
      out.phase = phase;
      const auto edges = lattice.assign(phase.edge);
      const auto is_alone = alone(reads, edges, kAlone * period);
      std::optional<long> last;
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (is_alone[i]) {
          const auto [low, high] = lattice.candidates(i, phase.edge);
          if (last && low <= *last) continue;
          last = high;
          out.anchors.push_back(
              {phase.edge + 0.5 * static_cast<double>(low + high) * period, reads[i].joules,
               std::hypot(phase.sigma, 0.5 * static_cast<double>(high - low) * period), false,
               points[i].segment});
          continue;
        }
        if (!edges[i] || (last && *edges[i] <= *last)) continue;
        last = edges[i];
        out.anchors.push_back({phase.edge + static_cast<double>(*edges[i]) * period,
                               reads[i].joules, phase.sigma, true, points[i].segment});
      }
      return out;
    }
  }
  for (const auto& p : points) {
    const double a = time.seconds_of(p.before);
    const double b = time.seconds_of(p.after);
    // A value is on average half a refresh old when it is read.
    const double at = 0.5 * (a + b - refresh);
    if (!out.anchors.empty()) {
      const Anchor& last = out.anchors.back();
      if (at <= last.at) continue;
      // Not renewed yet: it says nothing about now.
      if (p.energy.joules() == last.joules && at - last.at < 1.5 * refresh) continue;
    }
    const double open = refresh > 0 ? refresh : 0.001;
    out.anchors.push_back(
        {at, p.energy.joules(), std::hypot(open, b - a) / std::sqrt(12.0), false, p.segment});
  }
  return out;
}

}  // namespace jouleprof::analysis
