#include "analysis/bench/bench_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/median.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

const model::Window* find_window(const model::Recording& recording, const std::string& name) {
  for (const auto& window : recording.windows) {
    if (window.name == name) return &window;
  }
  return nullptr;
}

bool is_gpu(const model::DomainProfile& d) {
  return d.domain.kind == model::DomainKind::kGpu || d.domain.kind == model::DomainKind::kGpuMemory;
}

// Leaves out the GPUs that do not do the work, from the profile, its warnings and each group.
void leave_out_other_gpus(BenchEnergy& energy, const std::string& device) {
  auto& domains = energy.profile.domains;
  for (std::size_t i = domains.size(); i-- > 0;) {
    if (!is_gpu(domains[i]) || domains[i].domain.device == device) continue;
    const std::string prefix = domains[i].domain.device + ":";
    std::erase_if(energy.profile.warnings,
                  [&](const std::string& warning) { return warning.starts_with(prefix); });
    const auto place = static_cast<std::ptrdiff_t>(i);
    domains.erase(domains.begin() + place);
    for (auto& group : energy.phases) {
      if (i < group.energies.size()) group.energies.erase(group.energies.begin() + place);
    }
  }
}

std::optional<GaugeSummary> summary_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  const auto [low, high] = std::ranges::minmax_element(values);
  return GaugeSummary{sum / static_cast<double>(values.size()), *low, *high};
}

std::optional<std::vector<ClockLimit>> limits_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  std::map<std::string, std::size_t> counts;
  for (const double value : values) {
    for (const auto name : model::ClockReasons::of_gauge(value).names())
      ++counts[std::string(name)];
  }
  std::vector<ClockLimit> limits;
  for (const auto& [name, count] : counts) {
    limits.push_back({name, static_cast<double>(count) / static_cast<double>(values.size())});
  }
  return limits;
}

std::optional<PowerSummary> power_summary_of(std::vector<double> watts) {
  if (watts.empty()) return std::nullopt;
  double sum = 0;
  for (const double w : watts) sum += w;
  const double mean = sum / static_cast<double>(watts.size());
  const std::size_t count = watts.size();
  return PowerSummary{Power::watts(median(std::move(watts))), Power::watts(mean), count};
}

}  // namespace

Result<BenchEnergy> bench_energy(const Run& run, const model::BenchCase& bench) {
  const auto& recording = run.recording();
  const auto* window = find_window(recording, bench.window);
  const auto work = run.span();
  if (!work) return tl::unexpected(work.error());
  if (window == nullptr) {
    return fail(Errc::kNotFound,
                fmt::format("the recording has no window '{}', so its energy is not known; the "
                            "workload's windows did not reach the tool",
                            bench.window));
  }
  const auto& profile =
      run.profile({.from = window->begin - work->begin, .to = window->end - work->begin});
  if (!profile) return tl::unexpected(profile.error());
  BenchEnergy energy;
  energy.profile = *profile;
  const auto& whole = run.profile();
  if (!whole) return tl::unexpected(whole.error());
  for (const auto& phase : bench.phases) {
    for (const auto& group : whole->windows) {
      if (!group.imported && group.name == phase.window) energy.phases.push_back(group);
    }
  }
  if (energy.phases.size() != bench.phases.size()) {
    return fail(Errc::kNotFound,
                fmt::format("the recording lacks windows of the phases of '{}'", bench.window));
  }
  leave_out_other_gpus(energy, bench.energy_device);
  for (std::size_t i = 0; i < energy.profile.domains.size(); ++i) {
    const auto& domain = energy.profile.domains[i].domain;
    if (domain.device != bench.energy_device || domain.parent) continue;
    energy.device = i;
    const auto values = [&](std::string_view name) {
      std::vector<double> read;
      for (const auto& r : gauge_of(recording, domain, name, window->begin, window->end)) {
        read.push_back(r.value);
      }
      return read;
    };
    energy.sm_clock = summary_of(values(model::gauge::kSmClock));
    energy.temperature = summary_of(values(model::gauge::kTemperature));
    energy.limits = limits_of(values(model::gauge::kClockEventReasons));
    break;
  }
  return energy;
}

std::vector<DevicePower> power_of_work(const model::Recording& recording) {
  std::vector<DevicePower> devices;
  const auto& run = recording.run;
  if (!run.work_begin || !run.work_end) return devices;
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu) continue;
    std::vector<double> rest;
    std::vector<double> work;
    for (const auto& reading : recording.readings.powers) {
      const auto sensor = std::ranges::find(recording.sensors, reading.sensor, &model::Sensor::id);
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
    const auto at_work = power_summary_of(std::move(work));
    if (at_work) devices.push_back({domain.device, power_summary_of(std::move(rest)), *at_work});
  }
  return devices;
}

}  // namespace jouleprof::analysis
