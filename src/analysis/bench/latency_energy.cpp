#include "analysis/bench/latency_energy.h"

#include <algorithm>

#include "base/median.h"

namespace jouleprof::analysis {
namespace {

std::optional<PowerSummary> summary_of(std::vector<double> watts) {
  if (watts.empty()) return std::nullopt;
  double sum = 0;
  for (const double w : watts) sum += w;
  const double mean = sum / static_cast<double>(watts.size());
  const std::size_t count = watts.size();
  return PowerSummary{Power::watts(median(std::move(watts))), Power::watts(mean), count};
}

}  // namespace

std::vector<DevicePower> power_of_work(const model::Recording& recording) {
  std::vector<DevicePower> devices;
  const auto& run = recording.run;
  if (!run.work_begin || !run.work_end) return devices;
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu) continue;
    std::vector<double> rest;
    std::vector<double> work;
    for (const auto& reading : recording.readings.powers) {
      const auto sensor = std::find_if(recording.sensors.begin(), recording.sensors.end(),
                                       [&](const auto& s) { return s.id == reading.sensor; });
      if (sensor == recording.sensors.end() || sensor->domain != domain.id) continue;
      // A row covers the time before its stamp.
      const auto is_in = [&](HostTime begin, HostTime end) {
        return reading.at > begin && reading.at <= end;
      };
      if (is_in(*run.work_begin, *run.work_end)) work.push_back(reading.power.watts());
      for (const auto& span : recording.idle_spans) {
        if (is_in(span.begin, span.end)) rest.push_back(reading.power.watts());
      }
    }
    const auto at_work = summary_of(std::move(work));
    if (at_work) devices.push_back({domain.device, summary_of(std::move(rest)), *at_work});
  }
  return devices;
}

}  // namespace jouleprof::analysis
