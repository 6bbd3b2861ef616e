// Library, system and the simulator's own functions.
#include <fmt/format.h>
#include <unistd.h>

#include "apps/nvml_sim/core/return_names.h"
#include "apps/nvml_sim/nvml/dispatch.h"
#include "base/file.h"

namespace sim = jouleprof::nvml_sim;
using jouleprof::abi::Return;

JOULEPROF_NVML_EXPORT Return nvmlInit() { return sim::init(); }
JOULEPROF_NVML_EXPORT Return nvmlInit_v2() { return sim::init(); }
JOULEPROF_NVML_EXPORT Return nvmlInitWithFlags(unsigned) { return sim::init(); }
JOULEPROF_NVML_EXPORT Return nvmlShutdown() { return sim::shut_down(); }

JOULEPROF_NVML_EXPORT const char* nvmlErrorString(Return result) {
  return sim::error_string(result);
}

JOULEPROF_NVML_EXPORT Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return sim::with_library(__func__, [&](const sim::Session& s) {
    return sim::give_text(s.simulator->scenario().driver_version, version, length);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return sim::with_library(__func__, [&](const sim::Session& s) {
    const auto& scenario = s.simulator->scenario();
    return sim::give_text(
        fmt::format("{}.{}", scenario.cuda_version / 1000, scenario.driver_version), version,
        length);
  });
}

JOULEPROF_NVML_EXPORT Return nvmlSystemGetCudaDriverVersion(int* version) {
  return sim::with_library(__func__, [&](const sim::Session& s) {
    return sim::give(version, s.simulator->scenario().cuda_version);
  });
}
JOULEPROF_NVML_EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

JOULEPROF_NVML_EXPORT Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return sim::with_library(__func__, [&](const sim::Session&) {
    auto command = jouleprof::read_file(fmt::format("/proc/{}/cmdline", pid));
    if (!command || name == nullptr || length == 0) return Return::kNotFound;
    const std::string first = command->substr(0, command->find('\0'));
    return sim::give_text(first.substr(0, length - 1), name, length);
  });
}

// Present in the simulated library alone: by it a program knows that nothing here is measured.
JOULEPROF_NVML_EXPORT const char* jouleprof_nvml_sim_version;
const char* jouleprof_nvml_sim_version = JOULEPROF_VERSION;

namespace {

double true_joules(sim::Scope scope, unsigned device, long long begin_real_ns,
                   long long end_real_ns) {
  const auto session = sim::session_or_start();
  if (session == nullptr || device >= session->simulator->devices().size()) return -1;
  if (end_real_ns < begin_real_ns) return -1;
  session->simulator->take_shared_limits();
  const auto& simulator = *session->simulator;
  return simulator.devices()[device]->joules(scope, simulator.to_seconds(begin_real_ns),
                                             simulator.to_seconds(end_real_ns));
}

}  // namespace

// The true joules of a GPU between two times of CLOCK_REALTIME. Below zero: no such device, an end
// before the beginning, or a scenario that can't be read. Works without nvmlInit.
JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_energy_joules(unsigned device,
                                                              long long begin_real_ns,
                                                              long long end_real_ns) {
  return true_joules(sim::Scope::kGpu, device, begin_real_ns, end_real_ns);
}

// The same of the whole module: the GPU and what module_power says.
JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_module_energy_joules(unsigned device,
                                                                     long long begin_real_ns,
                                                                     long long end_real_ns) {
  return true_joules(sim::Scope::kModule, device, begin_real_ns, end_real_ns);
}

// How fast work runs on a device now: 1 unless its power limit holds it back. A program that
// pretends to work on the device runs so much slower. Below zero: as above.
JOULEPROF_NVML_EXPORT double jouleprof_nvml_sim_speed_ratio(unsigned device) {
  const auto session = sim::session_or_start();
  if (session == nullptr || device >= session->simulator->devices().size()) return -1;
  session->simulator->take_shared_limits();
  return session->simulator->devices()[device]->speed(session->simulator->now());
}

JOULEPROF_NVML_CHECK(Init);
JOULEPROF_NVML_CHECK(Init_v2);
JOULEPROF_NVML_CHECK(InitWithFlags);
JOULEPROF_NVML_CHECK(Shutdown);
JOULEPROF_NVML_CHECK(ErrorString);
JOULEPROF_NVML_CHECK(SystemGetDriverVersion);
JOULEPROF_NVML_CHECK(SystemGetNVMLVersion);
JOULEPROF_NVML_CHECK(SystemGetCudaDriverVersion);
JOULEPROF_NVML_CHECK(SystemGetCudaDriverVersion_v2);
JOULEPROF_NVML_CHECK(SystemGetProcessName);
