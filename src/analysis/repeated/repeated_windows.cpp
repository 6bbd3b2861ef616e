#include "analysis/repeated/repeated_windows.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/repeated/state_powers.h"
#include "analysis/repeated/window_states.h"
#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kDriftRounds = 3;
constexpr std::size_t kMostRows = 90'000;  // observations: half an hour
constexpr double kMostWatts = 20e3;        // no board draws more

}  // namespace

struct RepeatedWindows::State {
  std::unordered_set<std::string_view> names;
  WindowStates states;
  StatePowers powers;
  PowerDrift drift;
  model::ScaleError scale;
  std::string sensor;
  model::Provenance provenance{};

  // Each round removes the drift that the last one shows.
  bool solve(EnergyTimeline& timeline, const std::vector<ObservedPower>& observed) {
    for (int round = 0; round < kDriftRounds; ++round) {
      auto steady = observed;
      for (ObservedPower& s : steady) s.watts /= drift.ratio((s.begin + s.end) / 2);
      auto found = state_powers(states, steady, timeline.time_constant(), drift.variation());
      if (!found) return false;
      powers = std::move(*found);
      drift = PowerDrift(states, powers.solution.watts, timeline);
    }
    return true;
  }
};

RepeatedWindows::RepeatedWindows(std::unique_ptr<State> state) : state_(std::move(state)) {}
RepeatedWindows::RepeatedWindows(RepeatedWindows&&) noexcept = default;
RepeatedWindows& RepeatedWindows::operator=(RepeatedWindows&&) noexcept = default;
RepeatedWindows::~RepeatedWindows() = default;

std::optional<RepeatedWindows> RepeatedWindows::fit(std::span<const model::Window> windows,
                                                    EnergyTimeline& timeline,
                                                    const std::optional<RecordedSpan>& within) {
  auto state = std::make_unique<State>();
  state->names = short_window_names(windows);
  if (state->names.empty()) return std::nullopt;
  state->states = window_states(windows, state->names);
  const ActivityTable& table = state->states.table;
  if (table.empty()) return std::nullopt;
  HostTime from = table.time.host_of(table.begin);
  HostTime to = table.time.host_of(table.end);
  if (within) {
    from = std::max(from, within->begin);
    to = std::min(to, within->end);
  }
  auto observed = timeline.observations(from, to, table.time);
  std::erase_if(observed,
                [](const ObservedPower& s) { return s.watts < 0 || s.watts > kMostWatts; });
  if (observed.size() > kMostRows || !state->solve(timeline, observed)) return std::nullopt;
  state->scale = timeline.sensor_scale();
  state->sensor = timeline.sensor_name();
  state->provenance = timeline.provenance();
  return RepeatedWindows(std::move(state));
}

std::optional<model::Measurement> RepeatedWindows::sum(
    std::span<const model::Window* const> windows) const {
  const State& s = *state_;
  if (windows.empty() || !s.names.contains(windows.front()->name)) return std::nullopt;
  const PowerSolution& solution = s.powers.solution;
  VectorXd factor = VectorXd::Zero(solution.watts.size());
  std::vector<double> times(s.states.entries());
  for (const model::Window* w : windows) {
    const double begin = s.states.table.time.seconds_of(w->begin);
    const double end = s.states.table.time.seconds_of(w->end);
    std::fill(times.begin(), times.end(), 0.0);
    s.states.add_time(begin, end, times);
    const double ratio = s.drift.ratio((begin + end) / 2);
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (k < s.states.table.classes.size()) factor[0] += ratio * times[k];
      factor[static_cast<Index>(k) + 1] += ratio * times[k];
    }
  }
  const double joules = factor.dot(solution.watts);
  const double model = std::hypot(kErrors.repeated_model * joules, factor.dot(s.powers.near_shift));
  const double sigma = std::hypot(std::sqrt(solution.variance(factor)),
                                  factor.dot(solution.alternative_shift), model);
  if (joules <= 0 || kErrors.normal95 * sigma > kErrors.widest_repeated * joules)
    return std::nullopt;
  model::Measurement m;
  m.energy = Energy::joules(joules);
  m.repeatability = Energy::joules(kErrors.normal95 * sigma);
  m.error = Energy::joules(std::hypot(kErrors.normal95 * sigma, s.scale.gain_half() * joules));
  m.provenance = s.provenance;
  m.sensor = s.sensor;
  m.shift = s.scale.gain_shift();
  m.method = "regression on the windows' edges";
  return m;
}

}  // namespace jouleprof::analysis
