#include "analysis/kernels/kernel_attribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/kernels/activity_rows.h"
#include "analysis/kernels/kernel_evidence.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/kernels/remembered_kernels.h"
#include "analysis/levels/domains.h"
#include "analysis/processes/apportion.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/timeline/locked_load.h"
#include "analysis/timeline/sensors/error_model.h"
#include "base/text.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMostHeld = 0.02;  // of the time with reduced clocks
constexpr std::size_t kMostNamed = 5;
// Of kernels without a record, by readings of utilisation: these count what the records have within
// 0.2 of the time, and a pause between two launches may count as use.
constexpr double kLeastSeen = 1.5;         // seconds of readings
constexpr double kLeastUnrecorded = 0.25;  // of that time ...
constexpr double kLeastExcess = 0.5;       // ... and of what is recorded
constexpr double kShortPause = 5e-6;       // seconds

class Attribution {
 public:
  // `lost`: ends of processes that used the device, and of these the ones within the part.
  Attribution(const model::Recording& recording, const model::Domain& domain,
              EnergyTimeline& timeline, const BoardLevels& levels, ActivityTable table,
              std::vector<LostEnd> lost, std::vector<LostEnd> lost_in_part)
      : recording_(recording),
        timeline_(timeline),
        levels_(levels),
        table_(std::move(table)),
        lost_(std::move(lost)),
        lost_in_part_(std::move(lost_in_part)) {
    out_.domain = domain;
  }

  std::optional<model::ActivityProfile> run(const OnAttributed& also) {
    // The last launches may come after the last reading.
    const auto extent = timeline_.extent();
    if (!extent) return std::nullopt;
    out_.begin = std::max(table_.time.host_of(table_.begin), extent->begin);
    out_.end = table_.time.host_of(table_.end);
    // What a killed process ran last is unattributed, not forgotten.
    for (const LostEnd& lost : lost_in_part_) out_.end = std::max(out_.end, lost.end);
    out_.end = std::min(out_.end, extent->end);
    if (out_.end <= out_.begin) return std::nullopt;
    const auto measured = table_.replay_time.energy_without(timeline_, out_.begin, out_.end);
    if (!measured) return std::nullopt;
    out_.measured = *measured;
    out_.replay = table_.replay_time.energy_within(timeline_, extent->begin, extent->end);
    out_.replay_time = table_.replay_time.within(extent->begin, extent->end);
    out_.replay_inside = table_.replay_time.within(out_.begin, out_.end);

    out_.launches = table_.launches;
    out_.dropped = table_.dropped;
    out_.memsets_left_out = table_.memsets_left_out;

    const auto& last = table_.bins.back();
    const HostTime first_work = table_.time.host_of(table_.bins.front().begin);
    const HostTime last_work = table_.time.host_of(last.begin + last.width);
    evidence_ = kernel_evidence(recording_, timeline_, table_, levels_, lost_,
                                traced_parts(recording_, out_.domain, first_work, last_work));
    held_ = ClockLimits(recording_, out_.domain)
                .held_share(first_work, last_work, table_.replay_time)
                .value_or(0);
    const SmClocks clocks(recording_, out_.domain, table_, held_);
    auto check = drop_deviating_replays(table_, clocks, evidence_.observed);
    out_.warnings = std::move(check.warnings);
    auto model = KernelModel::fit(table_, evidence_.observed, evidence_.idle, limit_watts(),
                                  timeline_.time_constant(), clocks, known(clocks), check);
    if (!model) {
      attribute_nothing();
      return std::move(out_);
    }
    find_sampling_error(*model);
    find_excess(*model);
    find_unrecorded();
    const auto& solution = model->solution();
    out_.idle_power = Power::watts(model->idle_watts());
    out_.idle_error = Power::watts(kErrors.normal95 * model->idle_sigma());
    out_.explained = solution.explained;
    out_.rows = solution.rows;
    out_.method = method();
    ActivityRows rows(recording_, table_, *model, timeline_.sensor_scale(), out_.measured);
    rows.fill(out_);
    balance(*model);
    add_sampling_error();
    remember(*model, clocks);
    warn(*model);
    if (also) also({table_, *model, rows, timeline_.sensor_scale().gain_most(), out_});
    return std::move(out_);
  }

 private:
  // At other clocks a kernel draws another power: where they are known, only runs at about the same
  // count.
  std::vector<KnownKernel> known(const SmClocks& clocks) const {
    if (held_ > kMostHeld && !clocks.program_hertz()) return {};
    return known_kernels(recording_.remembered, out_.domain.uuid, table_, clocks.program_hertz());
  }

  // What was used of earlier runs, and what later ones may use: only where nothing but the traced
  // kernels moved the power.
  void remember(const KernelModel& model, const SmClocks& clocks) {
    if (!model.known().empty() || !model.contradicted().empty()) {
      auto& use = out_.remembered.emplace();
      use.kernels = model.known().size();
      use.contradicted = model.contradicted().size();
      use.first = RealTime::max();
      use.last = RealTime::min();
      for (const auto* list : {&model.known(), &model.contradicted()}) {
        for (const KnownKernel& k : *list) {
          use.first = std::min(use.first, k.first);
          use.last = std::max(use.last, k.last);
        }
      }
      if (use.kernels > 0) out_.method += ", and kernels of earlier runs";
    }
    const bool alone = lost_.empty() && out_.others == Energy{} && out_.idle_observed;
    if ((held_ > kMostHeld && !clocks.program_hertz()) || !alone ||
        !out_.domain.uuid.starts_with("GPU-"))
      return;
    out_.resolved = resolved_kernels(out_.domain.uuid, table_, model, clocks.program_hertz());
    const RealTime begin =
        ClockMap(recording_.clock_points).to_real(table_.time.host_of(table_.bins.front().begin));
    for (auto& kernel : out_.resolved) kernel.observed = begin;
  }

  // The highest power limit of the recording; 0: unknown.
  double limit_watts() const {
    double limit = 0;
    for (const auto& r : gauge_of(recording_, out_.domain, model::gauge::kPowerLimit)) {
      limit = std::max(limit, r.value);
    }
    return limit;
  }

  std::string method() const {
    const auto& observed = evidence_.observed;
    const bool counter = std::ranges::any_of(observed, [](auto& s) { return s.counter; });
    const bool samples = std::ranges::any_of(observed, [](auto& s) { return !s.counter; });
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
    const bool any_use =
        std::ranges::any_of(use, [](const auto& slice) { return !slice.claims.empty(); });
    for (const LostEnd& lost : lost_in_part_) out_.lost += lost_energy(model, lost);
    if (any_use && (left - out_.lost).joules() > error_of_rest(model)) {
      out_.others = left - out_.lost;
    }
    out_.unattributed = left - out_.others;
  }

  // The counter, too, adds up samples: at 20, 40 or 10 ms they may see one phase of a load for
  // hours.
  void find_sampling_error(KernelModel& model) {
    const auto& sensors = timeline_.sensors();
    SamplingSensor sensor;
    sensor.time_constant = timeline_.time_constant();
    if (sensors.power && sensors.power->kind == model::SensorKind::kPowerRing) {
      if (sensors.power->traits.refresh) sensor.every = seconds(*sensors.power->traits.refresh);
      if (sensors.power->traits.window) sensor.window = seconds(*sensors.power->traits.window);
    }
    const auto fitted = sampling_lock(
        table_, [&](const auto& entry) { return model.joules_of(entry); }, sensor);
    lock_ = fitted
                ? fitted
                : sampling_lock(
                      table_, [&](const auto& entry) { return any_joules(table_, entry); }, sensor);
    if (!lock_) return;
    lock_->error = std::hypot(fitted ? fitted->error : 0.0, error_by_powers(model, sensor));
    if (lock_->error <= kErrors.least_locked_kernels) return lock_.reset();
    sampled_every_ = sensor.every;
    model.set_sampling_error(lock_->error);
  }

  // Where samples see few phases, the regression hardly knows which kernel draws how much, and so
  // not what they miss. Of the kernels' energy, over all phases: half of the 95 % interval.
  double error_by_powers(const KernelModel& model, const SamplingSensor& sensor) const {
    const double step = table_.bins.front().width;
    const auto weights = sampling_weights(step, sensor);
    const std::size_t places = weights.size();
    std::vector<std::vector<double>> busy(table_.classes.size(), std::vector<double>(places));
    for (std::size_t i = 0; i < table_.bins.size(); ++i) {
      const double at = table_.bins[i].begin - table_.begin;
      if (at < 0 || table_.bins[i].begin >= table_.end) continue;
      const auto place = static_cast<std::size_t>(std::lround(at / step)) % places;
      for (std::size_t e = table_.bins[i].first; e < table_.end_of(i); ++e) {
        const auto& entry = table_.entries[e];
        if (entry.kernel_class < busy.size()) busy[entry.kernel_class][place] += entry.busy;
      }
    }
    double most = 0;
    for (std::size_t phase = 0; phase < places; ++phase) {
      std::vector<KernelModel::Use> missed;
      for (std::uint32_t k = 0; k < busy.size(); ++k) {
        auto& use = missed.emplace_back(KernelModel::Use{.kernel_class = k});
        for (std::size_t i = 0; i < places; ++i)
          use.busy += busy[k][i] * (weights[(i + phase) % places] - 1);
      }
      most = std::max(most, model.energy_of(missed).sigma);
    }
    const double joules = model.energy_of(all_uses(model)).joules;
    return joules > 0 ? kErrors.normal95 * most / joules : 0;
  }

  // Where idle and kernels exceed what was measured, at least one of them is wrong by that much,
  // and nothing says which.
  void find_excess(KernelModel& model) {
    const double joules = model.energy_of(all_uses(model)).joules;
    const double between = std::max(model.idle_between_watts(), 0.0) * table_.idle_between;
    const double parts = joules + between + model.idle_watts() * seconds(out_.length());
    const double excess = parts - out_.measured.energy.joules();
    const bool is_excess = joules > 0 && excess > error_of_rest(model);
    model.set_excess(
        std::max(is_excess ? std::min(excess / joules, 1.0) : 0.0, evidence_.untraced));
  }

  // Kernels that other kernels launch have no record. The driver's utilisation, the share of the
  // time in which any kernel ran, shows them; that of other processes, too.
  void find_unrecorded() {
    if (evidence_.untraced > 0) return;
    const auto readings =
        gauge_of(recording_, out_.domain, model::gauge::kGpuUtilisation, out_.begin, out_.end);
    double length = 0;
    double seen = 0;
    double recorded = 0;
    std::size_t bin = 0;
    for (std::size_t i = 1; i < readings.size(); ++i) {
      const double from = table_.time.seconds_of(readings[i - 1].at);
      const double to = table_.time.seconds_of(readings[i].at);
      length += to - from;
      seen += readings[i].value * (to - from);
      while (bin < table_.bins.size() && table_.bins[bin].begin < from) ++bin;
      for (; bin < table_.bins.size() && table_.bins[bin].begin < to; ++bin) {
        for (std::size_t e = table_.bins[bin].first; e < table_.end_of(bin); ++e) {
          const auto& entry = table_.entries[e];
          if (entry.kernel_class < table_.classes.size()) recorded += entry.busy;
        }
      }
    }
    const double pauses = kShortPause * static_cast<double>(table_.launches) * length /
                          std::max(seconds(out_.length()), length);
    const double excess = seen - recorded - pauses;
    if (length < kLeastSeen || excess < kLeastUnrecorded * length ||
        excess < kLeastExcess * recorded) {
      return;
    }
    out_.unrecorded = duration_of(excess / length * seconds(out_.length()));
    out_.warnings.push_back(fmt::format(
        "kernels ran for {:.0f} % of the time by the driver's utilisation, and for {:.0f} % by "
        "their records: others ran without one, as those do that kernels launch, or another "
        "program's. Their energy is unattributed, or of kernels that ran next to them",
        100 * seen / length, 100 * recorded / length));
  }

  void add_sampling_error() {
    if (!lock_) return;
    const Energy active = std::max(out_.measured.energy - out_.idle, out_.kernels);
    const Energy doubt = Energy::joules(lock_->error * active.joules());
    widen(out_.measured, doubt);
    for (auto& row : out_.by_kernel) {
      if (!row.resolvable && row.energy) bound_by_all(*row.energy, row.busy, out_.kernels + doubt);
    }
    out_.warnings.push_back(fmt::format(
        "the load repeats every {:.1f} ms, and the sensor takes a sample every {:.0f} ms: it may "
        "see the same phase each time, so the measured energy is uncertain by {:.4g} J; by its "
        "kernels it is {:.4g} J. A period that varies by a millisecond would be measured right",
        1e3 * lock_->period, 1e3 * sampled_every_, doubt.joules(),
        (out_.idle + out_.kernels + out_.gaps).joules()));
  }

  // The upper bound of a row that is not separated from the others: what all kernels use, at most
  // what the board can draw while it runs.
  void bound_by_all(model::Measurement& row, Duration busy, Energy all) const {
    const double limit = kErrors.headroom * limit_watts();
    const Energy most = limit > 0 ? std::min(all, Power::watts(limit) * busy) : all;
    row.repeatability = std::max(row.repeatability, most - row.energy);
    row.error = std::max(row.error, row.repeatability);
  }

  // Above idle and the recorded kernels.
  Energy lost_energy(const KernelModel& model, const LostEnd& lost) const {
    const HostTime begin = std::max(lost.begin, out_.begin);
    const HostTime end = std::min(lost.end, out_.end);
    if (end <= begin) return {};
    const auto measured = table_.replay_time.energy_without(timeline_, begin, end);
    if (!measured) return {};
    double known = model.idle_watts() * seconds(end - begin);
    for (std::size_t i = 0; i < table_.bins.size(); ++i) {
      const HostTime at = table_.time.host_of(table_.bins[i].begin);
      if (at < begin || at >= end) continue;
      for (std::size_t e = table_.bins[i].first; e < table_.end_of(i); ++e) {
        known += model.joules_of(table_.entries[e]);
      }
    }
    return std::max(measured->energy - Energy::joules(known), Energy{});
  }

  std::vector<KernelModel::Use> all_uses(const KernelModel& model) const {
    std::vector<KernelModel::Use> all;
    for (std::uint32_t k = 0; k < table_.classes.size(); ++k) {
      for (const auto& use : model.all_of(k)) all.push_back(use);
    }
    return all;
  }

  // Half of the 95 % interval of what idle power and kernels leave over.
  double error_of_rest(const KernelModel& model) const {
    return std::hypot(out_.measured.repeatability.joules(),
                      kErrors.normal95 * model.energy_of(all_uses(model)).sigma,
                      kErrors.normal95 * model.idle_sigma() * seconds(out_.length()));
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
    warn_of_contradictions(model);
    if (held_ > kMostHeld) {
      w.push_back(
          fmt::format("power or temperature limits reduced the clocks for {:.0f} % of the time; "
                      "energies of kernels are those at the reduced clocks",
                      100 * held_));
    }
    if (evidence_.untraced > 0) {
      w.push_back(
          "processes without a trace used the GPU for most of the time: their part of the power is "
          "by utilisation, and the intervals of kernels include twice or half of it");
    } else if (evidence_.idle_unseen) {
      w.push_back(
          fmt::format("idle power was not observed, because no pause of the GPU was long enough; "
                      "{:.0f} +- {:.0f} W are assumed{}, and the intervals of kernels include this",
                      model.idle_watts(), kErrors.normal95 * model.idle_sigma(),
                      levels_.held ? ", as observed by an earlier run" : ""));
    }
    if (table_.dropped > 0) {
      w.push_back(
          fmt::format("{} records of launches were dropped; their energy is attributed to other "
                      "kernels, or unattributed",
                      table_.dropped));
    }
    if (model.runs_between()) {
      w.push_back(
          fmt::format("the time between launches draws {:.0f} W more than idle: launches without a "
                      "record seem to have run there, and the intervals of kernels include this",
                      model.idle_between_watts()));
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
    for (const LostEnd& lost : lost_in_part_) {
      w.push_back(fmt::format("{}; {:.1f} J of that time are unattributed",
                              lost_text(recording_, lost), lost_energy(model, lost).joules()));
    }
    const double left = std::abs((out_.unattributed - out_.lost).joules());
    if (left > 0.03 * out_.measured.energy.joules() + 1) {
      w.push_back(fmt::format(
          "{:.1f} % of the energy is unattributed: no kernel explains it",
          100 * (out_.unattributed - out_.lost).joules() / out_.measured.energy.joules()));
    }
    if (const double share = overlapped_share(); share > 0.1) {
      w.push_back(fmt::format(
          "launches overlapped for {:.0f} % of the busy time; their common energy is "
          "estimated from measurements, but dividing it equally by time is an assumption",
          100 * share));
    }
    for (const auto& problem : table_.problems) w.push_back(problem);
  }

  void warn_of_contradictions(const KernelModel& model) {
    const auto& wrong = model.contradicted();
    if (wrong.empty()) return;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(wrong.size(), kMostNamed); ++i) {
      KernelModel::Use one{wrong[i].kernel_class, wrong[i].variant, 1, 0, 0};
      const auto here = model.own_energy_of({&one, 1});
      names.push_back(fmt::format("{} ({:.0f} W then, {:.0f} +- {:.0f} W now)",
                                  demangle(table_.classes[wrong[i].kernel_class].key.name),
                                  wrong[i].watts, here.joules, kErrors.normal95 * here.sigma));
    }
    const std::size_t more = wrong.size() - names.size();
    out_.warnings.push_back(fmt::format(
        "the power that earlier runs found for {} of {} known kernels contradicts this run and was "
        "not used: {}{}",
        wrong.size(), wrong.size() + model.known().size(), fmt::join(names, ", "),
        more > 0 ? fmt::format(" and {} more", more) : ""));
  }

  const model::Recording& recording_;
  EnergyTimeline& timeline_;
  const BoardLevels& levels_;
  ActivityTable table_;
  std::vector<LostEnd> lost_;
  std::vector<LostEnd> lost_in_part_;
  KernelEvidence evidence_;
  std::optional<SamplingLock> lock_;  // of the load, to the samples
  double sampled_every_ = 0;
  double held_ = 0;  // share of the time in which clocks were reduced, where known
  model::ActivityProfile out_;
};

// Those of processes that used the domain.
std::vector<LostEnd> lost_on(const model::Recording& recording, const model::Domain& domain,
                             std::optional<HostTime> from, std::optional<HostTime> to) {
  auto lost = lost_ends(recording, from, to);
  std::erase_if(lost, [&](const LostEnd& end) {
    const auto& trace = recording.traces[end.trace];
    return std::ranges::none_of(
        trace.chunks, [&](const auto& chunk) { return is_on(recording, trace, chunk, domain); });
  });
  return lost;
}

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
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to,
    const OnAttributed& also) {
  auto table = activity_on(recording, domain, from, to);
  if (!table) return tl::unexpected(table.error());
  if (table->empty()) return std::nullopt;
  return Attribution(recording, domain, timeline, levels, std::move(*table),
                     lost_on(recording, domain, {}, {}), lost_on(recording, domain, from, to))
      .run(also);
}

}  // namespace jouleprof::analysis
