#include "analysis/processes/idle.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/processes/processes.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kBusyGpu = 0.05;
constexpr double kBusyCpu = 0.25;

// The mean of the domain's utilisation gauge over a span; absent without a reading in it.
std::optional<double> utilisation(const model::Recording& recording, const model::Domain& domain,
                                  const model::IdleSpan& span, std::string_view gauge) {
  double sum = 0;
  int n = 0;
  for (const auto& sensor : recording.sensors) {
    if (sensor.kind != model::SensorKind::kGauge || sensor.name != gauge) continue;
    if (sensor.domain != domain.id && sensor.domain != domain.parent) continue;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor != sensor.id || r.at < span.begin || r.at > span.end) continue;
      sum += r.value;
      ++n;
    }
  }
  if (n == 0) return std::nullopt;
  return sum / n;
}

// Inverse-variance weighted mean; its error covers all spans that disagree with it.
std::optional<IdlePower> join(const std::vector<IdlePower>& spans) {
  double weight = 0;
  double mean = 0;
  for (const auto& s : spans) {
    const double w = 1 / std::max(s.error.watts() * s.error.watts(), 1e-12);
    weight += w;
    mean += w * s.power.watts();
  }
  if (spans.empty()) return std::nullopt;
  mean /= weight;
  double error = std::sqrt(1 / weight);
  for (const auto& s : spans) {
    const double off = std::abs(s.power.watts() - mean);
    if (off > s.error.watts()) error = std::max(error, off);
  }
  return IdlePower{Power::watts(mean), Power::watts(error)};
}

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

}  // namespace

IdleResult idle_power(EnergyTimeline& timeline, const model::Domain& domain,
                      const model::Recording& recording, HostTime work_begin, HostTime work_end) {
  IdleResult out;
  std::vector<IdlePower> before;
  std::vector<IdlePower> after;
  bool any_busy = false;
  for (const auto& span : recording.idle_spans) {
    const bool gpu = is_gpu(domain.kind);
    const auto busy = gpu ? utilisation(recording, domain, span, model::gauge::kGpuUtilisation)
                          : cpu_use(recording, span);
    if (busy && *busy > (gpu ? kBusyGpu : kBusyCpu)) {
      any_busy = true;
      continue;
    }
    HostTime begin = span.begin;
    if (span.end - begin > 500ms) begin += 100ms;
    if (span.end <= begin) continue;
    const auto m = timeline.energy(begin, span.end);
    if (!m) continue;
    const IdlePower p{m->energy / (span.end - begin), m->repeatability / (span.end - begin)};
    if (span.end <= work_begin) before.push_back(p);
    if (span.begin >= work_end) after.push_back(p);
  }
  const auto first = join(before);
  const auto last = join(after);
  if (first && last) {
    const double difference = std::abs(first->power.watts() - last->power.watts());
    if (difference <= std::hypot(first->error.watts(), last->error.watts())) {
      out.power = join({*first, *last});
    } else {
      out.power = *first;
      out.power->error = Power::watts(difference + last->error.watts());
      if (difference > 0.1 * first->power.watts()) {
        out.warnings.push_back(fmt::format(
            "{}: idle power was {:.1f} W before the work and {:.1f} W after it; the idle part uses "
            "the first and its interval covers both",
            domain.device, first->power.watts(), last->power.watts()));
      }
    }
  } else if (first) {
    out.power = first;
  } else if (last) {
    out.power = last;
    out.power->error = Power::watts(out.power->error.watts() + 0.1 * out.power->power.watts());
  } else if (any_busy) {
    out.warnings.push_back(
        fmt::format("{}: idle power is unknown, because other work ran while it was to be measured",
                    domain.device));
  }
  return out;
}

}  // namespace jouleprof::analysis
