#include "spans/reruns/driver_api.h"

namespace jouleprof::reruns {

bool load_driver(DriverApi& api) {
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
