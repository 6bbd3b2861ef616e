#include "session/sweep/run_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::session {
namespace {

using model::SweepRun;

bool is_gpu(const model::Domain& domain) {
  return domain.kind == model::DomainKind::kGpu && !domain.parent;
}

void leave_unranked(SweepRun& run, std::string reason) {
  if (run.unranked.empty()) run.unranked = std::move(reason);
}

// The joules of all GPUs over an interval (two times, or a window); absent, with the reason, where
// one is absent.
template <typename... Interval>
std::optional<double> gpu_joules(const analysis::Run& run, SweepRun& out,
                                 const Interval&... interval) {
  double sum = 0;
  bool any = false;
  const auto& domains = run.recording().domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (!is_gpu(domains[i])) continue;
    const auto energy = run.energy(i, interval...);
    if (!energy) {
      leave_unranked(out, fmt::format("{}: {}", domains[i].device, energy.error().message));
      return std::nullopt;
    }
    sum += energy->energy.joules();
    any = true;
  }
  if (any && sum > 0) return sum;
  leave_unranked(out, "no GPU's energy was measured");
  return std::nullopt;
}

// Of the GPUs, what is the command's; absent where the recording is not of a command. A GPU that
// others only held, and of which no level was observed, would have all energy of this run and a
// part of another's: such a run is not ranked.
std::optional<double> command_joules(const analysis::Run& run, const analysis::Part& part,
                                     SweepRun& out) {
  const auto& profile = run.profile(part);
  if (!profile) return std::nullopt;
  double sum = 0;
  for (const auto& domain : profile->domains) {
    if (!is_gpu(domain.domain)) continue;
    if (!domain.command) return std::nullopt;
    const auto& bounds = domain.command_bounds;
    const bool is_held_by_others = bounds && bounds->low < domain.command->processes &&
                                   domain.others.value_or(Energy{}) <= Energy{};
    if (domain.shares_include_rest && is_held_by_others) {
      leave_unranked(out, fmt::format("{}: others held it and its power at rest was not observed, "
                                      "so that the command's part is not known; --whole-machine "
                                      "ranks by all energy",
                                      domain.domain.device));
      return std::nullopt;
    }
    // What is not divided may be the command's in one run and not in another: it counts in all.
    sum += (domain.command->energy.energy + domain.command->undivided).joules();
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

// Of all values of one gauge, of all GPUs, during the work.
template <typename Part>
std::optional<double> mean_gauge(const model::Recording& recording, std::string_view name,
                                 const analysis::PartSpan& span, const Part& part) {
  double sum = 0;
  int count = 0;
  for (const auto& domain : recording.domains) {
    if (domain.parent) continue;
    for (const auto& r : model::gauge_of(recording, domain, name, span.begin, span.end)) {
      sum += part(r.value);
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// From the last reading of a gauge before the work to the first after it. Work shorter than the
// time between readings may have none of its own.
analysis::PartSpan with_neighbours(const model::Recording& recording, std::string_view name,
                                   analysis::PartSpan span) {
  const auto of_work = span;
  for (const auto& domain : recording.domains) {
    if (domain.parent) continue;
    const auto readings = model::gauge_of(recording, domain, name);
    const auto after =
        std::ranges::upper_bound(readings, of_work.end, {}, &model::GaugeReading::at);
    if (after != readings.end()) span.end = std::max(span.end, after->at);
    const auto inside =
        std::ranges::lower_bound(readings, of_work.begin, {}, &model::GaugeReading::at);
    if (inside != readings.begin()) span.begin = std::min(span.begin, std::prev(inside)->at);
  }
  return span;
}

void fill_state(const analysis::Run& run, const analysis::PartSpan& span,
                const analysis::Part& part, SweepRun& out) {
  const auto& recording = run.recording();
  out.simulated = model::is_simulated(recording);
  const auto same = [](double value) { return value; };
  const auto mean = [&](std::string_view name) { return mean_gauge(recording, name, span, same); };
  if (const auto hertz = mean(model::gauge::kSmClock)) out.sm_megahertz = *hertz * 1e-6;
  if (const auto hertz = mean(model::gauge::kMemoryClock)) out.memory_megahertz = *hertz * 1e-6;
  out.sm_utilisation = mean(model::gauge::kGpuUtilisation);
  out.memory_utilisation = mean(model::gauge::kMemoryUtilisation);
  const auto share = [&](auto held_back) {
    constexpr auto kName = model::gauge::kClockEventReasons;
    const auto is_held_back = [&](double value) {
      return held_back(model::ClockReasons::of_gauge(value)) ? 1.0 : 0.0;
    };
    const auto within = mean_gauge(recording, kName, span, is_held_back);
    if (within) return within;
    return mean_gauge(recording, kName, with_neighbours(recording, kName, span), is_held_back);
  };
  out.limited_by_power = share([](const auto& reasons) { return reasons.limited_by_power(); });
  out.limited_by_heat = share([](const auto& reasons) { return reasons.limited_by_heat(); });
  const auto& profile = run.profile(part);
  if (!profile) return;
  for (const auto& domain : profile->domains) {
    if (!is_gpu(domain.domain) || !domain.energy) continue;
    // The peak of the other boards may not be that of all.
    if (!domain.peak_power) return out.peak_watts.reset();
    out.peak_watts = std::max(out.peak_watts.value_or(0), domain.peak_power->watts());
  }
}

// Of windows within `part`. `units`: of the work, in each window.
void fill_windows(const analysis::Run& run, const std::string& name, double units,
                  const std::optional<analysis::PartSpan>& part, SweepRun& out) {
  double seconds_sum = 0;
  double joules = 0;
  unsigned count = 0;
  for (const auto& window : run.recording().windows) {
    if (window.name != name) continue;
    if (part && !(part->contains(window.begin) && part->contains(window.end))) continue;
    const auto energy = gpu_joules(run, out, window);
    if (!energy) return;
    seconds_sum += seconds(window.end - window.begin);
    joules += *energy;
    ++count;
  }
  if (count == 0) return leave_unranked(out, fmt::format("it has no window named {}", name));
  out.units = count * units;
  out.seconds = seconds_sum / *out.units;
  out.joules = joules / *out.units;
}

void fill_throughput(const analysis::Run& run, const analysis::PartSpan& whole,
                     const std::vector<PrintedNumber>& printed, SweepRun& out) {
  if (printed.empty()) return leave_unranked(out, "it printed no number that --throughput matches");
  const bool has_warm_up = printed.size() >= 3;
  const HostTime begin = has_warm_up ? printed.front().at : whole.begin;
  const HostTime end = has_warm_up ? printed.back().at : whole.end;
  if (end <= begin) return leave_unranked(out, "it printed all of its numbers at once");
  // Each rate is that of the time since the one before.
  double rate = 0;
  double weights = 0;
  for (std::size_t i = has_warm_up ? 1 : 0; i < printed.size(); ++i) {
    const double weight = has_warm_up ? seconds(printed[i].at - printed[i - 1].at) : 1;
    rate += weight * printed[i].value;
    weights += weight;
  }
  rate /= weights;
  if (!(rate > 0)) return leave_unranked(out, "it printed a throughput that is not positive");
  const auto joules = gpu_joules(run, out, begin, end);
  if (!joules) return;
  out.units = rate;
  out.seconds = 1 / rate;
  out.joules = *joules / seconds(end - begin) / rate;
}

std::vector<PrintedNumber> printed_within(std::vector<PrintedNumber> printed,
                                          const std::optional<analysis::PartSpan>& part) {
  if (part) std::erase_if(printed, [&](const auto& number) { return !part->contains(number.at); });
  return printed;
}

// A time during which all GPUs reported the same power limit.
struct SettingInterval {
  analysis::PartSpan span;
  double watts = 0;
};

using Intervals = std::vector<SettingInterval>;

constexpr Duration kSettling = std::chrono::seconds{1};

// Of one GPU, over all time: before the first and after the last reading the setting is theirs.
Intervals intervals_of(const std::vector<model::GaugeReading>& readings) {
  Intervals found;
  for (const auto& reading : readings) {
    if (!found.empty() && found.back().watts == reading.value) {
      found.back().span.end = reading.at;
    } else {
      found.push_back({{reading.at, reading.at}, reading.value});
    }
  }
  for (std::size_t i = 1; i < found.size(); ++i) found[i].span.begin += kSettling;
  if (!found.empty()) {
    found.front().span.begin = HostTime::min();
    found.back().span.end = HostTime::max();
  }
  return found;
}

// The times in both lists at which their settings are the same.
Intervals common(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (const auto& x : a) {
    for (const auto& y : b) {
      const analysis::PartSpan span{std::max(x.span.begin, y.span.begin),
                                    std::min(x.span.end, y.span.end)};
      if (x.watts == y.watts && span.begin < span.end) both.push_back({span, x.watts});
    }
  }
  return both;
}

std::string list_of(const Intervals& intervals) {
  std::string list;
  for (const auto& interval : intervals) {
    list += fmt::format("{}{:g}", list.empty() ? "" : ", ", interval.watts);
  }
  return list;
}

SweepRun measured(const analysis::Run& run, const model::SweepPlan& plan, const WorkReport& report,
                  const SettingInterval& interval) {
  SweepRun out;
  out.block = 1;
  out.setting = interval.watts;
  out.requested = out.requested_after = out.enforced_watts = interval.watts;
  out.exit_status = 0;
  out.wall_seconds = seconds(interval.span.end - interval.span.begin);
  measure_run(run, plan, report, out, interval.span);
  judge_setting(plan, out);
  return out;
}

// Those within `span`, in order of time. After a change the first second is left out. Errors:
// unavailable where a GPU does not report its limit, or the limits of the GPUs are never the same.
Result<Intervals> setting_intervals(const model::Recording& recording,
                                    const analysis::PartSpan& span) {
  Intervals found{{span, 0}};
  bool is_first = true;
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || domain.parent) continue;
    const auto own = intervals_of(model::gauge_of(recording, domain, model::gauge::kPowerLimit));
    if (own.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{} does not report its power limit, so that runs cannot be grouped "
                              "by it",
                              domain.device));
    }
    if (is_first) {
      found.clear();
      for (auto interval : own) {
        interval.span = {std::max(interval.span.begin, span.begin),
                         std::min(interval.span.end, span.end)};
        if (interval.span.begin < interval.span.end) found.push_back(interval);
      }
    } else {
      found = common(found, own);
    }
    is_first = false;
  }
  if (is_first) return fail(Errc::kUnavailable, "no GPU was measured");
  if (!found.empty()) return found;
  return fail(Errc::kUnavailable,
              "the GPUs never had the same power limit for longer than a second; choose some with "
              "--devices");
}

}  // namespace

void measure_run(const analysis::Run& run, const model::SweepPlan& plan, const WorkReport& report,
                 SweepRun& out, const std::optional<analysis::PartSpan>& part) {
  const auto work = run.span();
  if (!work) return leave_unranked(out, work.error().message);
  const auto* span = part ? &*part : &*work;
  const auto asked =
      part ? analysis::Part{part->begin - work->begin, part->end - work->begin} : analysis::Part{};
  fill_state(run, *span, asked, out);
  const auto losses = printed_within(report.losses, part);
  if (!losses.empty() && std::isfinite(losses.back().value)) out.loss = losses.back().value;
  out.total_joules = gpu_joules(run, out, span->begin, span->end);
  if (!out.total_joules) return;
  const double length = seconds(span->end - span->begin);
  out.mean_watts = *out.total_joules / length;
  if (!plan.window.empty()) {
    fill_windows(run, plan.window, 1, part, out);
  } else if (!plan.throughput.empty()) {
    fill_throughput(run, *span, printed_within(report.printed, part), out);
  } else if (report.bench) {
    fill_windows(run, report.bench->window, static_cast<double>(report.bench->iterations), part,
                 out);
  } else {
    out.units = 1;
    out.seconds = length;
    const auto own = plan.whole_machine ? std::nullopt : command_joules(run, asked, out);
    if (out.unranked.empty()) out.joules = own.value_or(*out.total_joules);
  }
}

void judge_setting(const model::SweepPlan& plan, SweepRun& run) {
  constexpr double kRounding = 1;
  constexpr double kMostHeat = 0.02;
  const auto differs = [](double a, double b) { return std::abs(a - b) > kRounding; };
  if (run.requested && differs(*run.requested, run.setting)) {
    leave_unranked(run, fmt::format("the driver set {:g} instead", *run.requested));
  }
  if (run.requested_after && differs(*run.requested_after, run.setting)) {
    leave_unranked(run,
                   fmt::format("the setting changed to {:g} during the run: by another program, "
                               "or by the driver",
                               *run.requested_after));
  }
  const bool is_limit = plan.knob == "power_limit_watts";
  if (is_limit && run.enforced_watts && differs(*run.enforced_watts, run.setting)) {
    leave_unranked(run, fmt::format("{:g} W is enforced instead, by another limiter of the board",
                                    *run.enforced_watts));
  }
  constexpr double kMostOff = 0.05;
  if (plan.knob == "memory_clock_megahertz" && run.memory_megahertz &&
      std::abs(*run.memory_megahertz - run.setting) > kMostOff * run.setting) {
    leave_unranked(run, fmt::format("the memory clock was {:.0f} MHz: the driver does not hold it",
                                    *run.memory_megahertz));
  }
  if (run.limited_by_heat && *run.limited_by_heat > kMostHeat) {
    leave_unranked(
        run, fmt::format("slowed by heat in {:.0f} % of the readings", 100 * *run.limited_by_heat));
  }
}

Result<std::vector<SweepRun>> observe_runs(const analysis::Run& run, const model::SweepPlan& plan,
                                           const WorkReport& report, unsigned first) {
  const auto span = run.span();
  if (!span) return tl::unexpected(span.error());
  const auto intervals = setting_intervals(run.recording(), *span);
  if (!intervals) return tl::unexpected(intervals.error());
  const bool is_command = plan.window.empty() && plan.throughput.empty() && plan.bench.empty();
  if (is_command && intervals->size() > 1) {
    return fail(Errc::kUnavailable,
                fmt::format("the power limit changed while the command ran ({} W), and the command "
                            "has no units of work: name them with --per or --throughput, or change "
                            "the limit between runs",
                            list_of(*intervals)));
  }
  std::vector<SweepRun> runs;
  std::string reason;
  for (const auto& interval : *intervals) {
    auto one = measured(run, plan, report, interval);
    if (!one.seconds || !one.joules) {
      if (reason.empty()) reason = one.unranked;
      continue;
    }
    one.number = first + static_cast<unsigned>(runs.size());
    runs.push_back(std::move(one));
  }
  if (!runs.empty()) return runs;
  return fail(Errc::kUnavailable,
              fmt::format("no unit of the work was measured at one power limit: {}", reason));
}

}  // namespace jouleprof::session
