#include "analysis/kernels/kernel_evidence.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "analysis/kernels/quiet_power.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kNoContext = 25;    // watts: a context and its clocks may add them to idle power
constexpr double kMostWatts = 20e3;  // no board draws more
constexpr double kAsLow = 1.1;       // times the lowest power within the work: counts as idle
constexpr Duration kAround = 3s;     // of the work
constexpr double kLeastSigma = 2;    // watts: of a level of another run

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
    out.idle = {levels.held->power.watts(), std::max(levels.held->error.watts(), kLeastSigma)};
    return out;
  }
  for (const auto& span : recording.idle_spans) {
    const auto energy = timeline.energy(span.begin, span.end);
    if (!energy || span.end <= span.begin) continue;
    const double idle = (energy->energy / (span.end - span.begin)).watts();
    out.idle = {std::min(idle + kNoContext, std::max(lowest, idle)), kNoContext};
    return out;
  }
  out.idle = {0.6 * lowest, 0.3 * lowest + 1};
  return out;
}

}  // namespace jouleprof::analysis
