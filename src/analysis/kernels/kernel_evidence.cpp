#include "analysis/kernels/kernel_evidence.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"
#include "model/device/gauge_names.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

// The idle power of a GPU with a context, observed while it runs nothing.

// Idle power drifts with temperature by several percent. So observations close to work, and after
// long work, have the greatest weights. `table` outlives it.
class QuietPower {
 public:
  // `memory`: seconds after work during which the sensors still respond to it.
  QuietPower(const ActivityTable& table, double memory) : table_(table), memory_(memory) {}

  // In order of their begins; those that overlap work or its response are ignored.
  void add(const ObservedPower& s);

  // Absent with fewer than five usable observations.
  std::optional<IdleHint> hint() const;

 private:
  const ActivityTable& table_;
  double memory_;
  std::size_t next_ = 0;    // bin
  double last_end_ = -1e9;  // of the bins before it
  double heat_ = 0;         // busy seconds before that, exponentially weighted
  int count_ = 0;
  int between_ = 0;  // of them, between work
  double weight_ = 0;
  double watts_ = 0;
  double squares_ = 0;
};

constexpr int kFewest = 5;      // observations
constexpr double kNear = 0.12;  // seconds from the nearest work

void QuietPower::add(const ObservedPower& s) {
  const auto& bins = table_.bins;
  while (next_ < bins.size() && bins[next_].begin < s.end) {
    const auto& bin = bins[next_];
    double busy = 0;
    for (std::size_t i = bin.first; i < table_.end_of(next_); ++i) busy += table_.entries[i].busy;
    heat_ = heat_ * std::exp(-(bin.begin - last_end_) / kErrors.warm) + busy;
    last_end_ = bin.begin + bin.width;
    ++next_;
  }
  if (last_end_ > s.begin - memory_) return;
  const double since = s.begin - last_end_;
  const double until = next_ < bins.size() ? bins[next_].begin - s.end : 1e9;
  const double length = s.end - s.begin;
  const double weight = length * std::exp(-std::min(since, until) / kNear) *
                        (0.05 + heat_ * std::exp(-since / kErrors.warm));
  ++count_;
  between_ += last_end_ > -1e8 && next_ < bins.size() ? 1 : 0;
  weight_ += weight;
  watts_ += weight * s.watts;
  squares_ += weight * s.watts * s.watts;
}

std::optional<IdleHint> QuietPower::hint() const {
  if (count_ < kFewest || weight_ <= 0) return std::nullopt;
  const double mean = watts_ / weight_;
  const double spread = std::sqrt(std::max(squares_ / weight_ - mean * mean, 0.0));
  return IdleHint{mean, 0.5 + 0.3 * spread, between_ < kFewest ? kErrors.held : 0.0};
}

using namespace std::chrono_literals;

constexpr double kMostWatts = 20e3;  // no board draws more
constexpr double kAsLow = 1.1;       // times the lowest power within the work: counts as idle
constexpr Duration kAround = 3s;     // of the work

double lowest_of(const std::vector<ObservedPower>& observed) {
  double lowest = 1e300;
  for (const ObservedPower& s : observed) lowest = std::min(lowest, s.watts);
  return lowest;
}

// Counter and samples measure the same board; where they differ by a factor, the counter is right.
void scale_samples(EnergyTimeline& timeline, HostTime begin, HostTime end,
                   std::vector<ObservedPower>& observed) {
  const auto counted = timeline.counter_only(begin, end);
  const auto sampled = timeline.samples_only(begin, end);
  if (!counted || !sampled || *sampled <= Energy{} || end - begin < 2s) return;
  const double ratio = counted->joules() / sampled->joules();
  if (std::abs(ratio - 1) > 0.1) return;  // another fault; the profile warns of it
  for (ObservedPower& s : observed) {
    if (!s.counter) s.watts *= ratio;
  }
}

void drop_lost(std::span<const LostEnd> lost, const ActivityTable& table, double time_constant,
               std::vector<ObservedPower>& observed) {
  for (const LostEnd& end : lost) {
    const double from = table.time.seconds_of(end.begin);
    const double to = table.time.seconds_of(end.end) + 6 * time_constant;
    std::erase_if(observed, [&](const ObservedPower& s) { return s.end > from && s.begin < to; });
  }
}

}  // namespace

KernelEvidence kernel_evidence(const model::Recording& recording, EnergyTimeline& timeline,
                               const ActivityTable& table, const BoardLevels& levels,
                               std::span<const LostEnd> lost) {
  KernelEvidence out;
  const auto& last = table.bins.back();
  const HostTime first_work = table.time.host_of(table.bins.front().begin);
  const HostTime last_work = table.time.host_of(last.begin + last.width);
  out.observed = timeline.observations(first_work, last_work, table.time);
  std::erase_if(out.observed,
                [](const ObservedPower& s) { return s.watts < 0 || s.watts > kMostWatts; });
  drop_lost(lost, table, timeline.time_constant(), out.observed);
  if (const auto extent = timeline.extent()) {
    scale_samples(timeline, std::max(first_work, extent->begin), std::min(last_work, extent->end),
                  out.observed);
  }
  const double lowest = lowest_of(out.observed);

  std::vector<ObservedPower> ordered = out.observed;
  if (model::is_at_rest_around_traces(recording.run) && !out.observed.empty()) {
    for (const auto& [from, to] :
         {std::pair{first_work - kAround, first_work}, std::pair{last_work, last_work + kAround}}) {
      for (const ObservedPower& s : timeline.observations(from, to, table.time)) {
        if (s.watts < kAsLow * lowest) ordered.push_back(s);
      }
    }
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const ObservedPower& a, const ObservedPower& b) { return a.begin < b.begin; });
  QuietPower quiet(table, 0.02 + 6 * timeline.time_constant());
  for (const ObservedPower& s : ordered) quiet.add(s);
  if (const auto hint = quiet.hint()) {
    out.idle = *hint;
    return out;
  }
  out.idle_unseen = true;
  if (levels.held && levels.held->power.watts() < lowest) {
    out.idle = {levels.held->power.watts(),
                std::max(levels.held->error.watts(), kErrors.other_run)};
    return out;
  }
  for (const auto& span : recording.idle_spans) {
    const auto energy = timeline.energy(span.begin, span.end);
    if (!energy || span.end <= span.begin) continue;
    const double idle = (energy->energy / (span.end - span.begin)).watts();
    out.idle = {std::min(idle + kErrors.no_context, std::max(lowest, idle)), kErrors.no_context};
    return out;
  }
  out.idle = {0.6 * lowest, 0.3 * lowest + 1};
  return out;
}

ClockLimits::ClockLimits(const model::Recording& recording, const model::Domain& domain) {
  std::optional<model::GaugeReading> last;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kClockEventReasons)) {
    if (last) {
      const auto reasons = model::ClockReasons::of_gauge(last->value);
      const bool held = reasons.limited_by_power() || reasons.limited_by_heat();
      intervals_.push_back({last->at, r.at, held});
    }
    last = r;
  }
}

std::optional<double> ClockLimits::held_share(HostTime begin, HostTime end,
                                              const ReplayTime& replays) const {
  double held = 0;
  double all = 0;
  for (const Interval& s : intervals_) {
    if (s.end <= begin || s.begin >= end || replays.holds(s.begin)) continue;
    const double length = seconds(std::min(s.end, end) - std::max(s.begin, begin));
    all += length;
    if (s.held) held += length;
  }
  return all > 0 ? std::optional(held / all) : std::nullopt;
}

}  // namespace jouleprof::analysis
