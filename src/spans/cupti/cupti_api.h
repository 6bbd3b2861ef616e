// CUPTI as a struct of function pointers, and what else of CUDA the process has loaded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abi/cupti_abi.h"
#include "base/process/dynlib.h"
#include "base/result.h"

namespace jouleprof::cupti {

// All pointers but graph_exec_id, which is newer, are set in what load_cupti() returns. Copies
// share the library.
struct CuptiApi {
  abi::cupti::fn::GetVersion* get_version = nullptr;
  abi::cupti::fn::GetResultString* result_string = nullptr;
  abi::cupti::fn::ActivityEnable* enable = nullptr;
  abi::cupti::fn::ActivityDisable* disable = nullptr;
  abi::cupti::fn::ActivityRegisterCallbacks* register_callbacks = nullptr;
  abi::cupti::fn::ActivityGetNextRecord* next_record = nullptr;
  abi::cupti::fn::ActivityGetNumDroppedRecords* dropped_records = nullptr;
  abi::cupti::fn::ActivityFlushAll* flush_all = nullptr;
  abi::cupti::fn::Subscribe* subscribe = nullptr;
  abi::cupti::fn::Unsubscribe* unsubscribe = nullptr;
  abi::cupti::fn::EnableCallback* enable_callback = nullptr;
  abi::cupti::fn::GetGraphNodeId* graph_node_id = nullptr;
  abi::cupti::fn::GetGraphExecId* graph_exec_id = nullptr;
  std::shared_ptr<DynLib> library;
  std::string path;
  // Whether copies and memory sets may be recorded. Not in graphs that XLA makes: programs fail
  // with CUDA_ERROR_LAUNCH_FAILED where these have records, and kernels of the graphs, too
  // (CUPTI 13.0).
  bool copies = true;
};

// Where CUPTI may be, best first: what the process has loaded, by its names, next to the loaded
// libraries of CUDA, in the usual places. `loaded`: paths of the process's libraries.
std::vector<std::string> cupti_candidates(const std::vector<std::string>& loaded);

// Loads the first of `candidates` that is CUPTI of CUDA 12 or newer. Errors: not_found, with what
// to install; unsupported when there is only an older one.
Result<CuptiApi> load_cupti(const std::vector<std::string>& candidates);

// --- The shared libraries of this process ---

// Paths of the loaded shared libraries.
std::vector<std::string> loaded_libraries();

bool is_loaded(const std::vector<std::string>& loaded, const char* name_start);

// The other tool that is likely to use CUPTI in this process: "Nsight Systems", "torch.profiler";
// "another profiler" where no library shows which.
std::string likely_profiler(const std::vector<std::string>& loaded);

// Whether XLA is loaded (JAX, TensorFlow) and puts operations into CUDA graphs, its command
// buffers. `flags`: the value of XLA_FLAGS.
bool has_command_buffers(const std::vector<std::string>& loaded, std::string_view flags);

// Whether CUDA's driver is loaded and initialised in this process.
enum class DriverState { kAbsent, kLoaded, kInitialised };
DriverState driver_state();

}  // namespace jouleprof::cupti
