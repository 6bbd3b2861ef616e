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

const Fault* Faults::hang(std::string_view call, std::optional<unsigned> device, double t) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == FaultKind::kHang && in_force(fault, device, t) && names(fault, call))
      return &fault;
  }
  return nullptr;
}

std::optional<abi::Return> Faults::failure(std::string_view call, std::optional<unsigned> device,
                                           double t) const {
  for (const Fault& fault : faults_) {
    if (!in_force(fault, device, t)) continue;
    if (fault.kind == FaultKind::kDriverReload) return abi::Return::kDriverNotLoaded;
    if (fault.kind == FaultKind::kGpuLost && device) return abi::Return::kGpuIsLost;
    if (fault.kind == FaultKind::kFail && names(fault, call)) return abi::Return::kNotSupported;
  }
  return std::nullopt;
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
