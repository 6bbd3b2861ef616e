// What an EnergyTimeline's sensors observed, one by one.
#include <algorithm>
#include <cmath>

#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// Seconds from its nearest anchor within which a counter is interpolated.
constexpr double kCounterReach = 0.15;

}  // namespace

std::optional<Energy> EnergyTimeline::counter_only(HostTime begin, HostTime end) {
  refresh();
  if (anchors_.size() < 2) return std::nullopt;
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  if (a < anchors_.front().anchor.at || b > anchors_.back().anchor.at) return std::nullopt;
  const auto joules = [this](double t) {
    const auto next = std::clamp(next_anchor(t), anchors_.cbegin() + 1, anchors_.cend() - 1);
    const Placed& p = *std::prev(next);
    return p.joules +
           (next->joules - p.joules) * (t - p.anchor.at) / (next->anchor.at - p.anchor.at);
  };
  const auto segment = [this](double t) {
    const auto next = next_anchor(t);
    return next == anchors_.begin() ? next->anchor.segment : std::prev(next)->anchor.segment;
  };
  const auto distance_to_anchor = [this](double t) {
    const auto next = next_anchor(t);
    const double after = next == anchors_.end() ? INFINITY : next->anchor.at - t;
    return next == anchors_.begin() ? after : std::min(after, t - std::prev(next)->anchor.at);
  };
  if (distance_to_anchor(a) > kCounterReach || distance_to_anchor(b) > kCounterReach) {
    return std::nullopt;
  }
  // Across a reset the counter alone gives no energy.
  if (segment(a) != segment(b)) return std::nullopt;
  return Energy::joules(joules(b)) - Energy::joules(joules(a));
}

std::optional<Energy> EnergyTimeline::samples_only(HostTime begin, HostTime end) {
  if (!has_samples()) return std::nullopt;
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  const double reach = shape_->spacing() + 0.02;
  if (a < shape_->samples().front().begin - reach || b > *shape_->end() + reach)
    return std::nullopt;
  return Energy::joules(shape_->integral(a, b));
}

double EnergyTimeline::time_constant() const {
  if (shape_ && shape_->time_constant() > 0) return shape_->time_constant();
  return sensors_.counter && sensors_.counter->traits.rise ? seconds(*sensors_.counter->traits.rise)
                                                           : 0.0;
}

std::vector<ObservedPower> EnergyTimeline::observations(HostTime begin, HostTime end,
                                                        TimeBase base) {
  refresh();
  std::vector<ObservedPower> out;
  if (!time_) return out;
  const double from = time_->seconds_of(begin);
  const double to = time_->seconds_of(end);
  const double shift = base.seconds_of(time_->origin);
  const bool lagging = sensors_.counter && sensors_.counter->traits.rise;
  const double late = lagging ? seconds(*sensors_.counter->traits.rise) : 0.0;
  // Anchors are at the time of the energy; the counter responds one time constant later.
  for (std::size_t i = 1; i < anchors_.size(); ++i) {
    const Anchor& a = anchors_[i - 1].anchor;
    const Anchor& b = anchors_[i].anchor;
    if (a.at < from || b.at > to || a.segment != b.segment) continue;
    const double length = b.at - a.at;
    if (length <= 0 || a.sigma + b.sigma > 0.3 * length) continue;
    const bool lattice = a.on_lattice && b.on_lattice && sensors_.counter->traits.refresh;
    const double lateness = lattice ? late : 0.0;
    // The lattice's own period, where two of its parts were fitted a little differently.
    const double period = lattice ? seconds(*sensors_.counter->traits.refresh) : 0.0;
    const double updates = lattice ? std::round(length / period) : 0.0;
    const double apart = updates > 0 && std::abs(length - updates * period) < 0.1 * period
                             ? updates * period
                             : length;
    out.push_back({b.at - apart + lateness + shift, b.at + lateness + shift,
                   (b.joules - a.joules) / apart, true});
  }
  if (shape_ && shape_->mean_window() > 0 &&
      shape_->sensor().kind != model::SensorKind::kPowerAverage) {
    for (const PowerSample& s : shape_->samples()) {
      const double end_of_mean = shape_->mean_end(s);
      const double begin_of_mean = end_of_mean - shape_->mean_window();
      if (begin_of_mean < from || end_of_mean > to) continue;
      out.push_back({begin_of_mean + shift, end_of_mean + shift, s.watts, false});
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
