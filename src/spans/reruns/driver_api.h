// The CUDA driver's functions that isolated re-runs call, as a struct of pointers.
#pragma once

#include "abi/cuda_abi.h"
#include "base/process/dynlib.h"

namespace jouleprof::reruns {

// The driver's functions. A driver before CUDA 12.4 may lack those after `newer`; all others are
// set in what load_driver() returns.
struct DriverApi {
  DynLib library;  // stays loaded
  abi::cuda::fn::CtxSetCurrent* set_context = nullptr;
  abi::cuda::fn::StreamCreate* create_stream = nullptr;
  abi::cuda::fn::StreamQuery* query_stream = nullptr;
  abi::cuda::fn::StreamBeginCapture_v2* begin_capture = nullptr;
  abi::cuda::fn::StreamEndCapture* end_capture = nullptr;
  abi::cuda::fn::GraphInstantiateWithFlags* instantiate = nullptr;
  abi::cuda::fn::GraphLaunch* launch_graph = nullptr;
  abi::cuda::fn::GraphExecDestroy* destroy_executable = nullptr;
  abi::cuda::fn::GraphDestroy* destroy_graph = nullptr;
  abi::cuda::fn::LaunchKernelEx* launch = nullptr;
  abi::cuda::fn::MemsetD8Async* set_bytes = nullptr;
  abi::cuda::fn::MemsetD16Async* set_shorts = nullptr;
  abi::cuda::fn::MemsetD32Async* set_words = nullptr;
  abi::cuda::fn::MemcpyDtoDAsync_v2* copy = nullptr;
  abi::cuda::fn::MemcpyDtoH_v2* copy_to_host = nullptr;
  abi::cuda::fn::MemAlloc_v2* allocate = nullptr;
  abi::cuda::fn::MemFree_v2* free = nullptr;
  abi::cuda::fn::MemGetInfo_v2* memory = nullptr;
  abi::cuda::fn::MemGetAddressRange_v2* range_of = nullptr;
  abi::cuda::fn::PointerGetAttribute* pointer_attribute = nullptr;
  abi::cuda::fn::GetErrorName* error_name = nullptr;
  // Newer
  abi::cuda::fn::FuncGetName* function_name = nullptr;
  abi::cuda::fn::FuncGetName* kernel_name = nullptr;
  abi::cuda::fn::FuncGetParamInfo* function_parameter = nullptr;
  abi::cuda::fn::FuncGetParamInfo* kernel_parameter = nullptr;
  abi::cuda::fn::FuncGetModule* module_of = nullptr;
  abi::cuda::fn::KernelGetLibrary* library_of = nullptr;
  abi::cuda::fn::FuncGetAttribute* attribute = nullptr;
  abi::cuda::fn::FuncSetAttribute* set_attribute = nullptr;
  // For code that was unloaded
  abi::cuda::fn::ModuleLoadData* load_module = nullptr;
  abi::cuda::fn::ModuleUnload* unload_module = nullptr;
  abi::cuda::fn::ModuleGetFunction* function_in = nullptr;
};

// Loads the functions of the driver that the process has loaded. False: there is none, or it lacks
// one of the older.
inline bool load_driver(DriverApi& api) {
  api.library = DynLib::loaded(abi::cuda::kLibrary);
  const auto bind = [&api](auto*& function, const char* name) {
    return api.library.bind(function, name);
  };
  bind(api.function_name, "cuFuncGetName");
  bind(api.kernel_name, "cuKernelGetName");
  bind(api.function_parameter, "cuFuncGetParamInfo");
  bind(api.kernel_parameter, "cuKernelGetParamInfo");
  bind(api.module_of, "cuFuncGetModule");
  bind(api.library_of, "cuKernelGetLibrary");
  bind(api.load_module, "cuModuleLoadData");
  bind(api.unload_module, "cuModuleUnload");
  bind(api.function_in, "cuModuleGetFunction");
  bind(api.attribute, "cuFuncGetAttribute");
  bind(api.set_attribute, "cuFuncSetAttribute");
  return bind(api.set_context, "cuCtxSetCurrent") && bind(api.create_stream, "cuStreamCreate") &&
         bind(api.query_stream, "cuStreamQuery") &&
         bind(api.begin_capture, "cuStreamBeginCapture_v2") &&
         bind(api.end_capture, "cuStreamEndCapture") &&
         bind(api.instantiate, "cuGraphInstantiateWithFlags") &&
         bind(api.launch_graph, "cuGraphLaunch") &&
         bind(api.destroy_executable, "cuGraphExecDestroy") &&
         bind(api.destroy_graph, "cuGraphDestroy") && bind(api.launch, "cuLaunchKernelEx") &&
         bind(api.set_bytes, "cuMemsetD8Async") && bind(api.set_shorts, "cuMemsetD16Async") &&
         bind(api.set_words, "cuMemsetD32Async") && bind(api.copy, "cuMemcpyDtoDAsync_v2") &&
         bind(api.copy_to_host, "cuMemcpyDtoH_v2") && bind(api.allocate, "cuMemAlloc_v2") &&
         bind(api.free, "cuMemFree_v2") && bind(api.memory, "cuMemGetInfo_v2") &&
         bind(api.range_of, "cuMemGetAddressRange_v2") &&
         bind(api.pointer_attribute, "cuPointerGetAttribute") &&
         bind(api.error_name, "cuGetErrorName");
}

}  // namespace jouleprof::reruns
