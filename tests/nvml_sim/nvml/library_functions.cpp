// The library, the system, and the simulator's own functions.
#include <fmt/format.h>

#include "base/file.h"
#include "nvml_sim/core/return_names.h"
#include "nvml_sim/nvml/dispatch.h"

namespace jouleprof::nvml_sim {
namespace {

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
JOULEPROF_NVML_EXPORT const char* nvmlErrorString(Return result) { return error_string(result); }

NVML_FUNCTION(SystemGetDriverVersion, char* version, unsigned length) {
  return with_library(__func__, [&](const Session& s) {
    return give_text(s.simulator->scenario().driver_version, version, length);
  });
}

NVML_FUNCTION(SystemGetNVMLVersion, char* version, unsigned length) {
  return with_library(__func__, [&](const Session& s) {
    const auto& scenario = s.simulator->scenario();
    return give_text(fmt::format("{}.{}", scenario.cuda_version / 1000, scenario.driver_version),
                     version, length);
  });
}

NVML_FUNCTION(SystemGetCudaDriverVersion, int* version) {
  return with_library(__func__, [&](const Session& s) {
    return give(version, s.simulator->scenario().cuda_version);
  });
}
NVML_ALIAS(SystemGetCudaDriverVersion_v2, SystemGetCudaDriverVersion);

NVML_FUNCTION(SystemGetProcessName, unsigned pid, char* name, unsigned length) {
  return with_library(__func__, [&](const Session&) {
    const auto command = read_file(fmt::format("/proc/{}/cmdline", pid));
    if (!command || name == nullptr || length == 0) return Return::kNotFound;
    const std::string first = command->substr(0, command->find('\0'));
    return give_text(first.substr(0, length - 1), name, length);
  });
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
