#include "analysis/levels/held_level.h"

#include <algorithm>
#include <chrono>

#include "model/device/gauge_names.h"
#include "model/gauges.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kNoUse = 0.005;
constexpr Duration kLook = 300ms;  // before a reading of utilisation, which is a mean of the past
constexpr Duration kLag = 20ms;
constexpr Duration kStep = 50ms;
// Steady power within that time: its steps differ by no more.
constexpr double kSteadyWatts = 3;
constexpr double kSteadyRatio = 0.03;
constexpr std::size_t kMany = 3;
// Half of a 95 % interval, in watts: of one or two readings, and at least.
constexpr double kFewError = 3;
constexpr double kLeastError = 1;

bool is_steady(EnergyTimeline& timeline, HostTime begin, HostTime end) {
  double low = 1e300;
  double high = 0;
  for (const auto& step : timeline.curve(begin, end, kStep)) {
    low = std::min(low, step.power.watts());
    high = std::max(high, step.power.watts());
  }
  return high >= low && high - low <= std::max(kSteadyWatts, kSteadyRatio * high);
}

std::vector<double> quiet_powers(EnergyTimeline& timeline, const model::Domain& domain,
                                 const model::Recording& recording, const BoardState& state) {
  std::vector<double> powers;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kGpuUtilisation)) {
    const HostTime begin = r.at - kLook;
    const HostTime end = r.at - kLag;
    if (r.value > kNoUse || !state.is_between(true, begin) || state.was_traced(begin, end))
      continue;
    if (!is_steady(timeline, begin, end)) continue;
    if (const auto m = timeline.energy(begin, end))
      powers.push_back((m->energy / (end - begin)).watts());
  }
  std::sort(powers.begin(), powers.end());
  return powers;
}

}  // namespace

LevelResult held_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state) {
  const auto powers = quiet_powers(timeline, domain, recording, state);
  LevelResult out;
  if (!powers.empty()) {
    const std::size_t tenth = powers.size() / 10;
    const double median = powers[powers.size() / 2];
    const double spread = (powers[powers.size() - 1 - tenth] - powers[tenth]) / 2;
    out.level = {Power::watts(median),
                 Power::watts(std::max(spread, powers.size() < kMany ? kFewError : kLeastError)),
                 "observed in this recording", true, std::nullopt};
    return out;
  }
  out.reason = "the GPU was never observed idle while a context held it";
  if (const auto& known = domain.known_levels.held) {
    out.level = {known->power, known->spread, "observed by an earlier run", false,
                 known->temperature_celsius};
  }
  return out;
}

}  // namespace jouleprof::analysis
