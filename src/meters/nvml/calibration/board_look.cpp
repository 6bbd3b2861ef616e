#include "meters/nvml/calibration/board_look.h"

#include <fmt/format.h>

#include "model/device/gauge_names.h"

namespace jouleprof::meters::nvml {
namespace {

// Boards at rest run at 210 to 345 MHz, with a context at more than 1 GHz.
constexpr double kHighClock = 600e6;
constexpr double kBusy = 0.05;

}  // namespace

std::optional<std::string> BoardLook::not_at_rest() const {
  if (processes && *processes > 0) {
    return fmt::format("{:.0f} process(es) hold a context on it", *processes);
  }
  if (utilisation && *utilisation > kBusy) {
    return fmt::format("its utilisation is {:.0f} %", 100 * *utilisation);
  }
  if (sm_clock && *sm_clock > kHighClock) {
    return fmt::format("its clocks are up ({:.0f} MHz)", *sm_clock * 1e-6);
  }
  if (processes || sm_clock) return std::nullopt;
  return "the driver reports neither its processes nor its clock";
}

BoardLook look_at(NvmlMeter& meter, const Gpu& gpu) {
  model::Readings readings;
  const std::string state = gpu.device() + " state";
  for (std::size_t i = 0; i < meter.probes().size(); ++i) {
    if (meter.probes()[i].name == state) meter.read(i, readings);
  }
  (void)meter.read_processes(readings);
  BoardLook look;
  for (const auto& r : readings.gauges) {
    const auto& sensor = meter.sensors()[static_cast<std::size_t>(r.sensor)];
    const auto& domain = meter.domains()[static_cast<std::size_t>(sensor.domain)];
    if (domain.device != gpu.device()) continue;
    if (sensor.name == model::gauge::kProcessCount) look.processes = r.value;
    if (sensor.name == model::gauge::kSmClock) look.sm_clock = r.value;
    if (sensor.name == model::gauge::kGpuUtilisation) look.utilisation = r.value;
    if (sensor.name == model::gauge::kTemperature) look.temperature = r.value;
  }
  return look;
}

}  // namespace jouleprof::meters::nvml
