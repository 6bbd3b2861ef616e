#include "analysis/levels/machine_idle.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "analysis/levels/domain_label.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kBusyCpu = 0.25;
constexpr double kAfterAlone = 0.1;  // more error, of the power
constexpr double kApart = 0.1;       // before and after, of the power: worth a warning

// The busy share of all CPUs' time over the span; absent without readings of the machine near both
// ends. Later readings are ignored, because they may include the work.
std::optional<double> cpu_use(const model::Recording& recording, const model::IdleSpan& span) {
  const model::MachineReading* first = nullptr;
  const model::MachineReading* last = nullptr;
  for (const auto& r : recording.process_readings.machine) {
    if (r.at < span.begin - 100ms || r.at > span.end + 20ms) continue;
    if (first == nullptr || r.at < first->at) first = &r;
    if (last == nullptr || r.at > last->at) last = &r;
  }
  if (first == nullptr || 2 * (last->at - first->at) < span.end - span.begin) return std::nullopt;
  const double total = seconds(last->total_cpu_time - first->total_cpu_time);
  if (total <= 0) return std::nullopt;
  return seconds(last->busy_cpu_time - first->busy_cpu_time) / total;
}

model::PowerLevel level(const ObservedLevel& observed, const char* source) {
  return {observed.power, observed.error, source, true, std::nullopt};
}

}  // namespace

LevelResult machine_idle(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin,
                         HostTime work_end) {
  LevelResult out;
  std::vector<ObservedLevel> before;
  std::vector<ObservedLevel> after;
  bool any_busy = false;
  for (const auto& span : recording.idle_spans) {
    if (const auto busy = cpu_use(recording, span); busy && *busy > kBusyCpu) {
      any_busy = true;
      continue;
    }
    HostTime begin = span.begin;
    if (span.end - begin > 500ms) begin += 100ms;
    if (span.end <= begin) continue;
    const auto m = timeline.energy(begin, span.end);
    if (!m) continue;
    const ObservedLevel p{m->energy / (span.end - begin), m->repeatability / (span.end - begin)};
    if (span.end <= work_begin) before.push_back(p);
    if (span.begin >= work_end) after.push_back(p);
  }
  const auto first = join(before);
  const auto last = join(after);
  if (first && last) {
    const double difference = std::abs(first->power.watts() - last->power.watts());
    if (difference <= std::hypot(first->error.watts(), last->error.watts())) {
      out.level = level(*join({*first, *last}), "observed before and after the work");
    } else {
      out.level = level(*first, "observed before the work");
      out.level->error = Power::watts(difference + last->error.watts());
      if (difference > kApart * first->power.watts()) {
        out.warnings.push_back(fmt::format(
            "{}: idle power was {:.1f} W before the work and {:.1f} W after it; the idle part uses "
            "the first and its interval covers both",
            label_of(domain), first->power.watts(), last->power.watts()));
      }
    }
  } else if (first) {
    out.level = level(*first, "observed before the work");
  } else if (last) {
    out.level = level(*last, "observed after the work");
    out.level->error += kAfterAlone * last->power;
  } else if (any_busy) {
    out.reason = "other work ran while it was to be measured";
    out.warnings.push_back(
        fmt::format("{}: idle power is unknown, because other work ran while it was to be measured",
                    label_of(domain)));
  } else {
    out.reason = "no time without the work was recorded";
  }
  return out;
}

}  // namespace jouleprof::analysis
