#include "analysis/kernels/kernel_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/kernels/activity_rows.h"
#include "analysis/kernels/clock_limits.h"
#include "analysis/kernels/kernel_evidence.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/kernels/replay_check.h"
#include "analysis/processes/apportion.h"
#include "analysis/processes/traced_split.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

class Attribution {
 public:
  Attribution(const model::Recording& recording, const model::Domain& domain,
              EnergyTimeline& timeline, const BoardLevels& levels, ActivityTable table)
      : recording_(recording), timeline_(timeline), levels_(levels), table_(std::move(table)) {
    out_.domain = domain;
  }

  std::optional<model::ActivityProfile> run() {
    // The last launches may come after the last reading.
    const auto extent = timeline_.extent();
    if (!extent) return std::nullopt;
    out_.begin = std::max(table_.time.host_of(table_.begin), extent->begin);
    out_.end = std::min(table_.time.host_of(table_.end), extent->end);
    if (out_.end <= out_.begin) return std::nullopt;
    const auto measured = table_.replay_time.energy_without(timeline_, out_.begin, out_.end);
    if (!measured) return std::nullopt;
    out_.measured = *measured;
    out_.replay = table_.replay_time.energy_within(timeline_, extent->begin, extent->end);
    out_.replay_time = table_.replay_time.within(extent->begin, extent->end);
    out_.replay_inside = table_.replay_time.within(out_.begin, out_.end);

    evidence_ = kernel_evidence(recording_, timeline_, table_, levels_);
    const auto& last = table_.bins.back();
    held_ = ClockLimits(recording_, out_.domain)
                .held_share(table_.time.host_of(table_.bins.front().begin),
                            table_.time.host_of(last.begin + last.width))
                .value_or(0);
    const SmClocks clocks(recording_, out_.domain, table_, held_);
    out_.warnings = drop_deviating_replays(recording_, table_, clocks, evidence_.observed);
    const auto model = KernelModel::fit(table_, evidence_.observed, evidence_.idle, limit_watts(),
                                        timeline_.time_constant(), clocks.power_variation());
    if (!model) {
      attribute_nothing();
      return std::move(out_);
    }
    const auto& solution = model->solution();
    out_.idle_power = Power::watts(model->idle_watts());
    out_.idle_error = Power::watts(1.96 * model->idle_sigma());
    out_.explained = solution.explained;
    out_.rows = solution.rows;
    out_.method = method();
    out_.launches = table_.launches;
    out_.dropped = table_.dropped;
    ActivityRows(recording_, table_, *model, gain(), out_.measured).fill(out_);
    balance(*model);
    warn(*model);
    return std::move(out_);
  }

 private:
  double gain() const {
    const auto& sensors = timeline_.sensors();
    return sensors.counter ? sensors.counter->traits.gain_error : sensors.power->traits.gain_error;
  }

  // The highest power limit of the recording; 0: unknown.
  double limit_watts() const {
    double limit = 0;
    for (const auto& sensor : recording_.sensors) {
      if (sensor.domain != out_.domain.id || sensor.name != model::gauge::kPowerLimit) continue;
      for (const auto& r : recording_.readings.gauges) {
        if (r.sensor == sensor.id) limit = std::max(limit, r.value);
      }
    }
    return limit;
  }

  std::string method() const {
    const auto& observed = evidence_.observed;
    const bool counter =
        std::any_of(observed.begin(), observed.end(), [](auto& s) { return s.counter; });
    const bool samples =
        std::any_of(observed.begin(), observed.end(), [](auto& s) { return !s.counter; });
    return counter && samples ? "regression on the energy counter and power samples"
           : counter          ? "regression on the energy counter"
                              : "regression on power samples";
  }

  double overlapped_share() const {
    double overlapped = 0;
    for (const auto& c : table_.classes) overlapped += c.overlapped;
    return table_.busy > 0 ? overlapped / table_.busy : 0;
  }

  void attribute_nothing() {
    out_.unattributed = out_.measured.energy;
    out_.method = "none";
    out_.warnings.push_back(
        "energy is not attributed to kernels: no sensor of this device reports power over known "
        "times");
  }

  void balance(const KernelModel& model) {
    out_.idle_observed = !evidence_.idle_unseen;
    out_.levels =
        with_held_power(levels_, out_).split(out_.measured, out_.begin, out_.end, out_.length());
    out_.idle = out_.levels.idle.value_or(*out_.idle_power * out_.length());
    for (const auto& row : out_.by_kernel) {
      if (row.energy) out_.kernels += row.energy->energy;
    }
    out_.gaps = Energy::joules(std::max(model.idle_between_watts(), 0.0) * table_.idle_between);
    share_idle_between();
    const Energy left = out_.measured.energy - out_.idle - out_.kernels - out_.gaps;
    const auto use = untraced_use(recording_, out_.domain, out_.begin, out_.end);
    const bool any_use = std::any_of(use.begin(), use.end(), [](double u) { return u > 0; });
    if (any_use && left.joules() > error_of_rest(model)) out_.others = left;
    out_.unattributed = left - out_.others;
  }

  // Half of the 95 % interval of what idle power and kernels leave over.
  double error_of_rest(const KernelModel& model) const {
    std::vector<KernelModel::Use> all;
    for (std::uint32_t k = 0; k < table_.classes.size(); ++k) {
      for (const auto& use : model.all_of(k)) all.push_back(use);
    }
    return std::hypot(out_.measured.repeatability.joules(), 1.96 * model.energy_of(all).sigma,
                      1.96 * model.idle_sigma() * seconds(out_.length()));
  }

  // In proportion to the busy time of each process.
  void share_idle_between() {
    std::vector<double> weights;
    for (const auto& p : out_.by_process) weights.push_back(seconds(p.busy));
    const auto parts = apportion(out_.gaps, weights);
    for (std::size_t i = 0; i < parts.size(); ++i) out_.by_process[i].idle_between = parts[i];
  }

  void warn(const KernelModel& model) {
    auto& w = out_.warnings;
    if (held_ > 0.02) {
      w.push_back(
          fmt::format("power or temperature limits reduced the clocks for {:.0f} % of the time; "
                      "energies of kernels are those at the reduced clocks",
                      100 * held_));
    }
    if (evidence_.idle_unseen) {
      w.push_back(
          fmt::format("idle power was not observed, because no pause of the GPU was long enough; "
                      "{:.0f} +- {:.0f} W are assumed{}, and the intervals of kernels include this",
                      model.idle_watts(), 1.96 * model.idle_sigma(),
                      levels_.held ? ", as observed by an earlier run" : ""));
    }
    if (table_.dropped > 0) {
      w.push_back(
          fmt::format("{} records of launches were dropped; their energy is attributed to other "
                      "kernels, or unattributed",
                      table_.dropped));
    }
    if (table_.graph_expanded > 0) {
      w.push_back(fmt::format(
          "{} of {} launches of CUDA graphs were divided among their nodes by the times "
          "of other launches",
          table_.graph_expanded, table_.graph_launches));
    }
    if (out_.explained < 0.8 && model.solution().rows > 50) {
      w.push_back(
          fmt::format("kernels explain only {:.0f} % of the variance of power: another program may "
                      "have used the GPU, or power was nearly constant",
                      100 * out_.explained));
    }
    const double left = std::abs(out_.unattributed.joules());
    if (left > 0.03 * out_.measured.energy.joules() + 1) {
      w.push_back(fmt::format("{:.1f} % of the energy is unattributed: no kernel explains it",
                              100 * out_.unattributed.joules() / out_.measured.energy.joules()));
    }
    if (const double share = overlapped_share(); share > 0.1) {
      w.push_back(fmt::format(
          "launches overlapped for {:.0f} % of the busy time; their common energy is "
          "estimated from measurements, but dividing it equally by time is an assumption",
          100 * share));
    }
    for (const auto& problem : table_.problems) w.push_back(problem);
  }

  const model::Recording& recording_;
  EnergyTimeline& timeline_;
  const BoardLevels& levels_;
  ActivityTable table_;
  KernelEvidence evidence_;
  double held_ = 0;  // share of the time in which clocks were reduced, where known
  model::ActivityProfile out_;
};

}  // namespace

BoardLevels with_held_power(BoardLevels levels, const model::ActivityProfile& activity) {
  if (!activity.idle_power) return levels;
  levels.held =
      model::PowerLevel{*activity.idle_power, activity.idle_error.value_or(Power{}),
                        activity.idle_observed ? "observed in this recording while nothing ran"
                        : levels.held          ? levels.held->source
                                               : "assumed: the GPU never paused for long enough",
                        activity.idle_observed, std::nullopt};
  return levels;
}

Result<std::optional<model::ActivityProfile>> attribute_kernels(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to) {
  auto table = activity_on(recording, domain, from, to);
  if (!table) return tl::unexpected(table.error());
  if (table->empty()) return std::nullopt;
  return Attribution(recording, domain, timeline, levels, std::move(*table)).run();
}

}  // namespace jouleprof::analysis
