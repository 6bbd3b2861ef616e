// CUDA driver API's C ABI: the few functions that a load of the tool's own needs, declared by hand
// from NVIDIA's published interface (https://docs.nvidia.com/cuda/cuda-driver-api), so that nothing
// of NVIDIA's is needed to build. "cu" before a name here is the exported symbol; a suffix (_v2) is
// part of the symbol.
#pragma once

#include <cstddef>

namespace jouleprof::abi::cuda {

// CUresult: zero is success, other values are errors; only those that the sources distinguish.
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kDeviceUnavailable = 46;  // in exclusive use of another process

using Device = int;                    // CUdevice
using DevicePtr = unsigned long long;  // CUdeviceptr, where pointers have 64 bits
struct ContextHandle;                  // CUcontext, CUmodule, CUfunction, CUstream: opaque
struct ModuleHandle;
struct FunctionHandle;
struct StreamHandle;
using Context = ContextHandle*;
using Module = ModuleHandle*;
using Function = FunctionHandle*;
using Stream = StreamHandle*;

struct Uuid {  // CUuuid
  unsigned char bytes[16];
};

// CUdevice_attribute
inline constexpr int kAttributeMultiprocessorCount = 16;
inline constexpr int kAttributeMaxThreadsPerMultiprocessor = 39;

namespace fn {

using Init = Result(unsigned flags);
using CtxGetCurrent = Result(Context* context);
using GetErrorString = Result(Result error, const char** text);
using DeviceGetCount = Result(int* count);
using DeviceGet = Result(Device* device, int ordinal);
using DeviceGetUuid = Result(Uuid* uuid, Device device);
using DeviceGetUuid_v2 = Result(Uuid* uuid, Device device);  // of the MIG instance, if it is one
using DeviceGetAttribute = Result(int* value, int attribute, Device device);

using DevicePrimaryCtxRetain = Result(Context* context, Device device);
using DevicePrimaryCtxRelease_v2 = Result(Device device);
using CtxSetCurrent = Result(Context context);
using CtxSynchronize = Result();

using ModuleLoadData = Result(Module* module, const void* image);
using ModuleUnload = Result(Module module);
using ModuleGetFunction = Result(Function* function, Module module, const char* name);
using MemAlloc_v2 = Result(DevicePtr* pointer, std::size_t bytes);
using MemFree_v2 = Result(DevicePtr pointer);
using LaunchKernel = Result(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, Stream stream, void** parameters, void** extra);

}  // namespace fn
}  // namespace jouleprof::abi::cuda
