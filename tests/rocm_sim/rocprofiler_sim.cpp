// A simulated librocprofiler-sdk.so: as a ROCm runtime calls it, and as it calls tools.
// JOULEPROF_ROCM_SIM_VERSION is its version (10100). JOULEPROF_ROCM_SIM_GPUS: "DOMAIN:LOCATION ..."
// in hex, of each agent.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>

#include "spans/rocm/rocprofiler_fixture.h"

namespace {

namespace abi = jouleprof::abi::rocprofiler;
using jouleprof::rocm::FakeRocprofiler;

FakeRocprofiler& sdk() {
  static FakeRocprofiler& only = *new FakeRocprofiler;
  return only;
}

struct Client {
  std::size_t size = sizeof(Client);
  const char* name = nullptr;
  std::uint32_t handle = 0;
};

std::deque<abi::ConfigureResult>& tools() {
  static auto& all = *new std::deque<abi::ConfigureResult>;
  return all;
}

void finalize() {
  sdk().configuring = false;
  for (const auto& tool : tools()) {
    if (tool.finalize != nullptr) tool.finalize(tool.data);
  }
  sdk().finalized = true;
}

void initialize() {
  std::atexit(finalize);
  if (const char* version = std::getenv("JOULEPROF_ROCM_SIM_VERSION")) {
    sdk().version = static_cast<std::uint32_t>(std::atoi(version));
  }
  const char* gpus = std::getenv("JOULEPROF_ROCM_SIM_GPUS");
  std::istringstream list(gpus != nullptr ? gpus : "0:c100 0:1000c100");
  for (std::string gpu; list >> gpu;) {
    unsigned domain = 0;
    unsigned location = 0;
    if (std::sscanf(gpu.c_str(), "%x:%x", &domain, &location) == 2) {
      sdk().gpus.emplace_back(domain, location);
    }
  }
  const char* libraries = std::getenv("ROCP_TOOL_LIBRARIES");
  std::istringstream paths(libraries != nullptr ? libraries : "");
  for (std::string path; std::getline(paths, path, ':');) {
    void* const tool = ::dlopen(path.c_str(), RTLD_GLOBAL | RTLD_LAZY);
    if (tool == nullptr) {
      std::fprintf(stderr, "error dlopening %s\n", path.c_str());
      continue;
    }
    auto* const configure =
        reinterpret_cast<abi::fn::Configure*>(::dlsym(tool, "rocprofiler_configure"));
    Client client;
    if (configure == nullptr) continue;
    if (const auto* result = configure(sdk().version, "simulated", 0, &client)) {
      tools().push_back(*result);
    }
  }
  for (auto& tool : tools()) {
    if (tool.initialize != nullptr) tool.initialize(nullptr, tool.data);
  }
  sdk().configuring = false;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// As rocprofiler-register calls it for each runtime that starts.
EXPORTED int rocprofiler_set_api_table(const char*, std::uint64_t, std::uint64_t, void**,
                                       std::uint64_t) {
  static const bool once = (initialize(), true);
  return once ? 0 : 1;
}

EXPORTED abi::Status rocprofiler_create_context(abi::Context* context) {
  return FakeRocprofiler::create_context(context);
}
EXPORTED abi::Status rocprofiler_start_context(abi::Context context) {
  return FakeRocprofiler::start_context(context);
}
EXPORTED abi::Status rocprofiler_stop_context(abi::Context context) {
  return FakeRocprofiler::stop_context(context);
}
EXPORTED abi::Status rocprofiler_create_buffer(abi::Context context, std::size_t size,
                                               std::size_t watermark, int policy,
                                               abi::BufferCallback* callback, void* data,
                                               abi::Buffer* buffer) {
  return FakeRocprofiler::create_buffer(context, size, watermark, policy, callback, data, buffer);
}
EXPORTED abi::Status rocprofiler_flush_buffer(abi::Buffer buffer) {
  return FakeRocprofiler::flush_buffer(buffer);
}
EXPORTED abi::Status rocprofiler_configure_buffer_tracing_service(abi::Context context, int kind,
                                                                  const std::int32_t* operations,
                                                                  std::size_t count,
                                                                  abi::Buffer buffer) {
  return FakeRocprofiler::buffer_tracing(context, kind, operations, count, buffer);
}
EXPORTED abi::Status rocprofiler_configure_callback_tracing_service(abi::Context context, int kind,
                                                                    const std::int32_t* operations,
                                                                    std::size_t count,
                                                                    void (*callback)(),
                                                                    void* data) {
  return FakeRocprofiler::callback_tracing(context, kind, operations, count, callback, data);
}
EXPORTED abi::Status rocprofiler_configure_external_correlation_id_request_service(
    abi::Context context, const int* kinds, std::size_t count, abi::CorrelationRequest* callback,
    void* data) {
  return FakeRocprofiler::correlation(context, kinds, count, callback, data);
}
EXPORTED abi::Status rocprofiler_query_available_agents(int version, abi::AgentsCallback* callback,
                                                        std::size_t size, void* data) {
  return FakeRocprofiler::agents(version, callback, size, data);
}
EXPORTED abi::Status rocprofiler_get_timestamp(std::uint64_t* stamp) {
  return FakeRocprofiler::timestamp(stamp);
}
EXPORTED const char* rocprofiler_get_status_string(abi::Status status) {
  return FakeRocprofiler::status_text(status);
}

// What a program does on the simulated GPU; times in stamps.
EXPORTED void jouleprof_rocm_sim_launch(const char* kernel, std::uint64_t start, std::uint64_t end,
                                        unsigned gpu) {
  sdk().launch(kernel, start, end, gpu);
}
EXPORTED void jouleprof_rocm_sim_range(const char* name) {
  sdk().marker(name != nullptr ? abi::kRangePush : abi::kRangePop, name);
}
EXPORTED std::uint64_t jouleprof_rocm_sim_stamp() { return FakeRocprofiler::stamp(); }
EXPORTED void jouleprof_rocm_sim_deliver() { sdk().deliver(); }
EXPORTED bool jouleprof_rocm_sim_has_tools() { return !tools().empty(); }
EXPORTED const char jouleprof_simulated_library[] = "1";
