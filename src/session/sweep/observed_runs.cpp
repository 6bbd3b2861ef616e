#include "session/sweep/observed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/device/gauge_names.h"
#include "model/gauges.h"

namespace jouleprof::session {
namespace {

using model::SweepRun;
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

}  // namespace

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
