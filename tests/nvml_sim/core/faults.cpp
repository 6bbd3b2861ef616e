#include "nvml_sim/core/faults.h"

#include <algorithm>

namespace jouleprof::nvml_sim {
namespace {

bool concerns(const Fault& fault, std::optional<unsigned> device) {
  return !fault.device || !device || *fault.device == *device;
}

bool in_force(const Fault& fault, std::optional<unsigned> device, double t) {
  return t >= fault.begin && t < fault.end && concerns(fault, device);
}

bool names(const Fault& fault, std::string_view call) {
  return fault.call == call || fault.call == call.substr(0, call.rfind("_v"));
}

}  // namespace

const Fault* Faults::find(FaultKind kind, std::string_view call, std::optional<unsigned> device,
                          double t) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && in_force(fault, device, t) && names(fault, call)) return &fault;
  }
  return nullptr;
}

std::optional<abi::Return> Faults::failure(std::string_view call, std::optional<unsigned> device,
                                           double t) const {
  for (const Fault& fault : faults_) {
    if (!in_force(fault, device, t)) continue;
    if (fault.kind == FaultKind::kDriverReload) return abi::Return::kDriverNotLoaded;
    if (fault.kind == FaultKind::kGpuLost && device) return abi::Return::kGpuIsLost;
    if (fault.kind == FaultKind::kFail && names(fault, call)) return fault.code;
  }
  return std::nullopt;
}

double Faults::sensor_time(SensorName sensor, unsigned device, double t) const {
  double shown = t;
  for (const Fault& fault : faults_) {
    if (fault.kind == FaultKind::kFrozen && fault.sensor == sensor && in_force(fault, device, t)) {
      shown = std::min(shown, fault.begin);
    }
  }
  return shown;
}

std::optional<double> Faults::counter_origin(unsigned device, double t) const {
  auto origin = last_reload(device, t);
  for (const Fault& fault : faults_) {
    if (fault.kind == FaultKind::kCounterReset && t >= fault.begin && concerns(fault, device)) {
      origin = std::max(origin.value_or(fault.begin), fault.begin);
    }
  }
  return origin;
}

std::optional<double> Faults::last_reload(unsigned device, double t) const {
  std::optional<double> last;
  for (const Fault& fault : faults_) {
    if (fault.kind == FaultKind::kDriverReload && t >= fault.end && concerns(fault, device)) {
      last = std::max(last.value_or(fault.end), fault.end);
    }
  }
  return last;
}

}  // namespace jouleprof::nvml_sim
