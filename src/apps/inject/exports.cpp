// What libjouleprof_inject.so exports: the drivers' entry points, and a few for Python.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/inject/trace.h"
#include "spans/layers/layers.h"

#define JOULEPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace inject = jouleprof::inject;

// The CUDA driver calls this when it initialises, if CUDA_INJECTION64_PATH names this library.
// CUDA starts also after a failure here.
JOULEPROF_EXPORT int InitializeInjection(void) {
  if (const char* folder = std::getenv("JOULEPROF_TRACE")) {
    inject::begin(folder, std::getenv("JOULEPROF_TRACE_WHAT"));
  }
  inject::start_kernels();
  inject::replay::at_exit();
  return 1;
}

// rocprofiler-sdk calls this once as a ROCm runtime starts, if ROCP_TOOL_LIBRARIES names this
// library; also where another tool has loaded rocprofiler-sdk. nullptr: it is not used.
JOULEPROF_EXPORT jouleprof::abi::rocprofiler::ConfigureResult* rocprofiler_configure(
    std::uint32_t version, const char*, std::uint32_t, void*) {
  const char* folder = std::getenv("JOULEPROF_TRACE");
  if (folder == nullptr) return nullptr;
  inject::begin(folder, std::getenv("JOULEPROF_TRACE_WHAT"));
  return inject::configure_rocprofiler(version);
}

// NVTX calls this once from each library that uses it, if NVTX_INJECTION64_PATH names this library.
JOULEPROF_EXPORT int InitializeInjectionNvtx2(
    jouleprof::abi::nvtx::GetExportTable* get_export_table) {
  return inject::fill_nvtx(get_export_table) ? 1 : 0;
}

// 0: traces into `folder` (see begin() in apps/inject/trace.h), from now on or already.
JOULEPROF_EXPORT int jouleprof_trace_begin(const char* folder, const char* what) {
  return inject::begin(folder, what) ? 0 : -1;
}

// Returns when all that ended before the call is in the spool.
JOULEPROF_EXPORT void jouleprof_trace_flush(void) { inject::flush(); }

// A problem to be shown with the trace of this process, once.
JOULEPROF_EXPORT void jouleprof_trace_problem(const char* text) {
  try {
    if (text != nullptr) jouleprof::layers::add_problem(text);
  } catch (...) {  // no memory: the problem is not reported
  }
}

// Isolated re-runs of the kernels of this process (apps/inject/trace.h). begin: with the seconds
// of each and of all; 0: they run. wait: whether they have ended, after up to `seconds`.
JOULEPROF_EXPORT int jouleprof_replay_begin(double each, double all) {
  return inject::replay::begin({each, all}) ? 0 : -1;
}
JOULEPROF_EXPORT int jouleprof_replay_wait(double seconds) {
  return inject::replay::wait(seconds) ? 1 : 0;
}
// Of a process that goes on: see replay::now(). `said` holds `size` bytes.
JOULEPROF_EXPORT int jouleprof_replay_now(double each, double all, char* said, size_t size) {
  std::string text;
  const int answer = inject::replay::now({each, all, true}, text);
  if (said != nullptr && size > 0) std::snprintf(said, size, "%s", text.c_str());
  return answer;
}
JOULEPROF_EXPORT void jouleprof_replay_stop(void) { inject::replay::stop(); }
// To be called when they have ended, with the status that the process will have.
JOULEPROF_EXPORT void jouleprof_replay_leave(int status) { inject::replay::leave_if_stuck(status); }

JOULEPROF_EXPORT void jouleprof_trace_end(void) { inject::end(false); }
