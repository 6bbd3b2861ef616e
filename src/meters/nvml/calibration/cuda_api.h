// The functions of CUDA's driver library that a load needs.
#pragma once

#include <string_view>

#include "abi/cuda_abi.h"
#include "base/process/dynlib.h"
#include "base/result.h"

namespace jouleprof::meters::nvml {

namespace cuda = abi::cuda;

struct CudaApi {
  DynLib library;
  cuda::fn::Init* init = nullptr;
  cuda::fn::GetErrorString* error_string = nullptr;
  cuda::fn::DeviceGetCount* device_count = nullptr;
  cuda::fn::DeviceGet* device = nullptr;
  cuda::fn::DeviceGetUuid_v2* uuid = nullptr;
  cuda::fn::DeviceGetAttribute* attribute = nullptr;
  cuda::fn::DevicePrimaryCtxRetain* retain = nullptr;
  cuda::fn::DevicePrimaryCtxRelease_v2* release = nullptr;
  cuda::fn::CtxSetCurrent* set_current = nullptr;
  cuda::fn::CtxSynchronize* synchronize = nullptr;
  cuda::fn::ModuleLoadData* load_module = nullptr;
  cuda::fn::ModuleUnload* unload_module = nullptr;
  cuda::fn::ModuleGetFunction* function = nullptr;
  cuda::fn::MemAlloc_v2* allocate = nullptr;
  cuda::fn::MemFree_v2* free = nullptr;
  cuda::fn::LaunchKernel* launch = nullptr;

  // Loads libcuda.so.1. Errors: not_found without it; unsupported when it lacks a function.
  Result<void> load();
  // The error of a call that returned `code`, with CUDA's text and what to do.
  tl::unexpected<Error> failed(std::string_view call, cuda::Result code) const;
};

}  // namespace jouleprof::meters::nvml
