// CUDA driver API's C ABI: the few functions that a load of the tool's own needs, declared by hand
// from NVIDIA's published interface (https://docs.nvidia.com/cuda/cuda-driver-api), so that nothing
// of NVIDIA's is needed to build. "cu" before a name here is the exported symbol; a suffix (_v2) is
// part of the symbol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jouleprof::abi::cuda {

inline constexpr const char* kLibrary = "libcuda.so.1";

// CUresult: zero is success, other values are errors; only those that the sources distinguish.
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kDeviceUnavailable = 46;  // in exclusive use of another process
inline constexpr Result kNotReady = 600;

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
struct GraphHandle;  // CUgraph, CUgraphNode, CUgraphExec, CUlibrary
struct GraphNodeHandle;
struct GraphExecHandle;
struct LibraryHandle;
using Graph = GraphHandle*;
using GraphNode = GraphNodeHandle*;
using GraphExec = GraphExecHandle*;
using Library = LibraryHandle*;

struct Uuid {  // CUuuid
  unsigned char bytes[16];
};

// CUdevice_attribute
inline constexpr int kAttributeMultiprocessorCount = 16;
inline constexpr int kAttributeMaxThreadsPerMultiprocessor = 39;

// CUfunction_attribute
inline constexpr int kFunctionMaxDynamicShared = 8;  // bytes
inline constexpr int kFunctionAnyClusterSize = 14;

// CUlaunchAttributeID
inline constexpr int kLaunchCooperative = 2;
inline constexpr int kLaunchClusterDimension = 4;
inline constexpr int kLaunchClusterScheduling = 5;
inline constexpr int kLaunchPreferredClusterDimension = 11;

struct LaunchAttribute {  // CUlaunchAttribute
  int id;
  unsigned char opaque[4];
  alignas(8) unsigned char value[64];

  bool operator==(const LaunchAttribute&) const = default;
};

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// What ends and begins a launch's `extra`
inline constexpr std::uintptr_t kExtraEnd = 0;
inline constexpr std::uintptr_t kExtraBuffer = 1;
inline constexpr std::uintptr_t kExtraBufferSize = 2;

struct KernelNodeParameters {  // CUDA_KERNEL_NODE_PARAMS_v2
  Function function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  Function kernel;  // where `function` is null
  Context context;
};

struct MemsetNodeParameters {  // CUDA_MEMSET_NODE_PARAMS
  DevicePtr address;
  std::size_t pitch;
  unsigned value;
  unsigned element_bytes;
  std::size_t width;  // in elements
  std::size_t height;
};

// CUgraphNodeParams; kernel or memset, by `type`.
inline constexpr int kNodeKernel = 0;
inline constexpr int kNodeMemset = 2;
struct NodeParameters {
  int type;
  int reserved[3];
  union {
    KernelNodeParameters kernel;
    MemsetNodeParameters memset;
  };
};

inline constexpr int kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;
// CUpointer_attribute
inline constexpr int kPointerMemoryType = 2;
inline constexpr unsigned kMemoryOfDevice = 2;  // CUmemorytype

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
using FuncGetAttribute = Result(int* value, int attribute, Function function);
using FuncSetAttribute = Result(Function function, int attribute, int value);
using MemAlloc_v2 = Result(DevicePtr* pointer, std::size_t bytes);
using MemFree_v2 = Result(DevicePtr pointer);
using LaunchKernel = Result(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, Stream stream, void** parameters, void** extra);

// Isolated re-runs
using LaunchKernelEx = Result(const LaunchConfig* config, Function function, void** parameters,
                              void** extra);
using FuncGetName = Result(const char** name, Function function);  // cuKernelGetName, too
using FuncGetParamInfo = Result(Function function, std::size_t index, std::size_t* offset,
                                std::size_t* bytes);  // cuKernelGetParamInfo, too
using FuncGetModule = Result(Module* module, Function function);
using KernelGetLibrary = Result(Library* library, Function kernel);
using StreamCreate = Result(Stream* stream, unsigned flags);
using StreamQuery = Result(Stream stream);
using StreamBeginCapture_v2 = Result(Stream stream, int mode);
using StreamEndCapture = Result(Stream stream, Graph* graph);
using GraphInstantiateWithFlags = Result(GraphExec* executable, Graph graph,
                                         unsigned long long flags);
using GraphLaunch = Result(GraphExec executable, Stream stream);
using GraphExecDestroy = Result(GraphExec executable);
using GraphDestroy = Result(Graph graph);
using MemsetD8Async = Result(DevicePtr address, unsigned char value, std::size_t count,
                             Stream stream);
using MemsetD16Async = Result(DevicePtr address, unsigned short value, std::size_t count,
                              Stream stream);
using MemsetD32Async = Result(DevicePtr address, unsigned value, std::size_t count, Stream stream);
using MemcpyDtoDAsync_v2 = Result(DevicePtr to, DevicePtr from, std::size_t bytes, Stream stream);
using MemcpyDtoH_v2 = Result(void* to, DevicePtr from, std::size_t bytes);
using MemGetInfo_v2 = Result(std::size_t* free, std::size_t* all);
using MemGetAddressRange_v2 = Result(DevicePtr* begin, std::size_t* bytes, DevicePtr within);
using PointerGetAttribute = Result(void* value, int attribute, DevicePtr pointer);
using GetErrorName = Result(Result error, const char** name);

}  // namespace fn
}  // namespace jouleprof::abi::cuda
