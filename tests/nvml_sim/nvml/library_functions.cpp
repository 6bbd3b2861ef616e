// The library, the system, and the simulator's own functions.
#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

constexpr const char* kDriverVersion = "580.159.04";

const char* text_of(Return code) {
  switch (code) {
    case Return::kSuccess:
      return "Success";
    case Return::kUninitialized:
      return "Uninitialized";
    case Return::kInvalidArgument:
      return "Invalid Argument";
    case Return::kNotSupported:
      return "Not Supported";
    case Return::kNoPermission:
      return "Insufficient Permissions";
    case Return::kNotFound:
      return "Not Found";
    case Return::kInsufficientSize:
      return "Insufficient Size";
    case Return::kDriverNotLoaded:
      return "Driver Not Loaded";
    case Return::kGpuIsLost:
      return "GPU is lost";
    case Return::kArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

// Calls `work(Simulator&, const SimDevice&)`; works without nvmlInit. Below zero: no such device,
// or a wrong scenario.
template <typename F>
double truth_of(unsigned device, F work) {
  const auto session = session_or_start();
  if (session == nullptr || device >= session->gpus().size()) return -1;
  session->simulator->take_shared_settings();
  return work(*session->simulator, *session->gpus()[device]);
}

double true_joules(Scope scope, unsigned device, long long begin_real_ns, long long end_real_ns) {
  if (end_real_ns < begin_real_ns) return -1;
  return truth_of(device, [&](const Simulator& simulator, const SimDevice& gpu) {
    return gpu.joules(scope, simulator.to_seconds(begin_real_ns),
                      simulator.to_seconds(end_real_ns));
  });
}

}  // namespace

NVML_FUNCTION(Init) { return init(); }
NVML_FUNCTION(Init_v2) { return init(); }
NVML_FUNCTION(InitWithFlags, unsigned) { return init(); }
NVML_FUNCTION(Shutdown) { return shut_down(); }

JOULEPROF_NVML_EXPORT abi::fn::ErrorString nvmlErrorString;
JOULEPROF_NVML_EXPORT const char* nvmlErrorString(Return result) { return text_of(result); }

NVML_FUNCTION(SystemGetDriverVersion, char* version, unsigned length) {
  return with_library(__func__,
                      [&](const Session&) { return give_text(kDriverVersion, version, length); });
}

// Only the simulated library has it: a program checks it to know that nothing is measured.
JOULEPROF_NVML_EXPORT const char* jouleprof_nvml_sim_version;
const char* jouleprof_nvml_sim_version = JOULEPROF_VERSION;

// SCENARIO.md states the contracts.
JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_energy_joules(unsigned device,
                                                              long long begin_real_ns,
                                                              long long end_real_ns) {
  return true_joules(Scope::kGpu, device, begin_real_ns, end_real_ns);
}

JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_module_energy_joules(unsigned device,
                                                                     long long begin_real_ns,
                                                                     long long end_real_ns) {
  return true_joules(Scope::kModule, device, begin_real_ns, end_real_ns);
}

JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_speed_ratio(unsigned device) {
  return truth_of(device, [](const Simulator& simulator, const SimDevice& gpu) {
    return gpu.speed(simulator.now());
  });
}

}  // namespace jouleprof::nvml_sim
