// CUPTI's C ABI: the part that tracing kernels needs, declared by hand from NVIDIA's published
// interface (https://docs.nvidia.com/cupti), so that nothing of NVIDIA's is needed to build.
// Layouts and numbers are checked against the vendor's headers where those are installed
// (spans/cupti/cupti_abi_test.cpp).
//
// The loaded library decides which version of a record it writes. What is declared of a record is a
// prefix that all its versions from CUDA 12.0 on have in common; records are never copied whole.
// "cupti" before a name in `fn` is the exported symbol.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_abi.h"

namespace jouleprof::abi::cupti {

// CUptiResult: the values that the sources distinguish.
enum class Result : unsigned {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,  // the end of a buffer
  kNotInitialized = 15,
  kInvalidKind = 21,
  kNotSupported = 27,
  kInsufficientPrivileges = 35,
  kMultipleSubscribersNotSupported = 39,
  kVirtualizedDeviceInsufficientPrivileges = 40,
  kUnknown = 999,
};

// CUpti_ActivityKind
enum class ActivityKind : unsigned {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,  // never enabled: it serialises
  kDevice = 8,
  kConcurrentKernel = 10,
  kMemcpy2 = 22,  // between devices
  kGraphTrace = 51,
};

// CUpti_CallbackDomain
enum class Domain : unsigned { kDriverApi = 1, kRuntimeApi = 2, kResource = 3 };

// CUpti_ApiCallbackSite
enum class Site : unsigned { kEnter = 0, kExit = 1 };

inline constexpr std::uint32_t kFlushForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// CUpti_driver_api_trace_cbid: what launches work, and what makes graphs executable.
enum class DriverCall : std::uint32_t {
  kGraphInstantiate = 513,
  kGraphInstantiate2 = 578,
  kGraphInstantiateWithFlags = 643,
  kGraphInstantiateWithParams = 656,
  kGraphInstantiateWithParamsPtsz = 657,
  kLaunchKernel = 307,
  kLaunchKernelPtsz = 442,
  kLaunchCooperativeKernel = 477,
  kLaunchCooperativeKernelPtsz = 478,
  kLaunchKernelEx = 652,
  kLaunchKernelExPtsz = 653,
  kGraphLaunch = 514,
  kGraphLaunchPtsz = 515,
  kMemcpyHtoD = 276,
  kMemcpyHtoDAsync = 277,
  kMemcpyDtoH = 278,
  kMemcpyDtoHAsync = 279,
  kMemcpyDtoD = 280,
  kMemcpyDtoDAsync = 281,
  kMemcpyAsync = 306,
  kMemcpyHtoDAsyncPtsz = 421,
  kMemcpyDtoHAsyncPtsz = 422,
  kMemcpyDtoDAsyncPtsz = 423,
  kMemcpyAsyncPtsz = 418,
  kMemsetD8 = 249,
  kMemsetD16 = 250,
  kMemsetD32 = 251,
  kMemsetD2D8 = 252,  // rows of a pitch
  kMemsetD2D16 = 253,
  kMemsetD2D32 = 254,
  kMemsetD8Async = 216,
  kMemsetD16Async = 218,
  kMemsetD32Async = 220,
  kMemsetD2D8Async = 222,
  kMemsetD2D16Async = 224,
  kMemsetD2D32Async = 226,
  kMemsetD8Ptds = 411,
  kMemsetD16Ptds = 412,
  kMemsetD32Ptds = 413,
  kMemsetD2D8Ptds = 414,
  kMemsetD2D16Ptds = 415,
  kMemsetD2D32Ptds = 416,
  kMemsetD8AsyncPtsz = 428,
  kMemsetD16AsyncPtsz = 429,
  kMemsetD32AsyncPtsz = 430,
  kMemsetD2D8AsyncPtsz = 431,
  kMemsetD2D16AsyncPtsz = 432,
  kMemsetD2D32AsyncPtsz = 433,
  // Changes of executable graphs
  kGraphExecKernelNodeSetParams = 538,
  kGraphExecUpdate = 561,
  kGraphExecUpdate2 = 696,
  kGraphExecMemcpyNodeSetParams = 562,
  kGraphExecMemsetNodeSetParams = 563,
  kGraphExecChildGraphNodeSetParams = 586,
  kGraphExecNodeSetParams = 714,
  kGraphConditionalHandleCreate = 722,
  // What a later launch of the same kernel needs to know
  kGraphAddKernelNode2 = 689,
  kGraphKernelNodeSetParams2 = 691,
  kGraphExecKernelNodeSetParams2 = 692,
  kGraphKernelNodeSetAttribute = 571,
  kGraphKernelNodeCopyAttributes = 569,
  kGraphAddMemsetNode = 506,
  kGraphAddNode = 712,
  kGraphAddNode2 = 723,
  kModuleUnload = 22,
  kLibraryUnload = 680,
  kMemFree2 = 245,
  kMemFreeAsync = 600,
  kMemFreeAsyncPtsz = 601,
  kMemUnmap = 552,
};

// CUpti_runtime_api_trace_cbid: launches through the runtime.
enum class RuntimeCall : std::uint32_t {
  kLaunchKernel = 211,
  kLaunchKernelPtsz = 214,
  kLaunchCooperativeKernel = 269,
  kLaunchCooperativeKernelPtsz = 270,
  kLaunchKernelExC = 430,
  kLaunchKernelExCPtsz = 431,
  kGraphLaunch = 311,
  kGraphLaunchPtsz = 312,
  kLaunchKernel13 = 505,  // from CUDA 13.0 on
  kLaunchKernel13Ptsz = 506,
  kMemcpyAsync = 41,
  kMemcpyAsyncPtsz = 225,
  kMemsetAsync = 51,
  kMemsetAsyncPtsz = 235,
};

// CUpti_CallbackIdResource
enum class ResourceCall : std::uint32_t {
  kModuleUnloadStarting = 7,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphExecCreateStarting = 17,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};

struct ContextHandle;  // CUcontext, CUgraph, CUgraphNode, CUgraphExec: opaque
struct GraphHandle;
struct GraphNodeHandle;
struct GraphExecHandle;
struct SubscriberHandle;  // CUpti_SubscriberHandle
using Context = ContextHandle*;
using Graph = GraphHandle*;
using GraphNode = GraphNodeHandle*;
using GraphExec = GraphExecHandle*;
using Subscriber = SubscriberHandle*;

// CUpti_Activity: what every record begins with.
struct Activity {
  ActivityKind kind;
};

// Stamps in nanoseconds of CLOCK_REALTIME; begin and end are both zero where they are not known.

struct ActivityKernel {  // CUpti_ActivityKernel8 (CUDA 12.0) and later
  ActivityKind kind;
  unsigned char opaque_1[12];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::int32_t grid[3];
  std::int32_t block[3];
  unsigned char opaque_2[16];
  std::uint32_t correlation_id;
  std::int64_t grid_id;
  const char* name;
  unsigned char opaque_3[32];
  std::uint64_t graph_node_id;  // 0: not of a graph
  unsigned char opaque_4[4];
  std::uint32_t graph_id;  // of the executable graph
};

struct ActivityMemcpy {  // CUpti_ActivityMemcpy5 and later
  ActivityKind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t destination_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t correlation_id;
  unsigned char opaque_1[16];
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct ActivityMemcpyPeer {  // CUpti_ActivityMemcpyPtoP4 (CUDA 12.0) and PtoP3
  ActivityKind kind;
  unsigned char opaque_1[4];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t source_device_id;
  std::uint32_t source_context_id;
  std::uint32_t destination_device_id;
  std::uint32_t destination_context_id;
  std::uint32_t correlation_id;
  unsigned char opaque_2[8];
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct ActivityMemset {  // CUpti_ActivityMemset3 and later
  ActivityKind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t correlation_id;
  unsigned char opaque_1[16];
  std::uint64_t graph_node_id;
  std::uint32_t graph_id;
};

struct ActivityGraphTrace {  // CUpti_ActivityGraphTrace and 2
  ActivityKind kind;
  std::uint32_t correlation_id;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device_id;  // kHostDevice: the graph begins on the host
  std::uint32_t graph_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
};
inline constexpr std::uint32_t kHostDevice = 0x7FFFFFFF;

struct ActivityDevice {  // CUpti_ActivityDevice4 (CUDA 12.0) and later
  ActivityKind kind;
  unsigned char opaque_1[108];
  std::uint32_t id;
  unsigned char opaque_2[4];
  unsigned char uuid[16];
  const char* name;
  std::uint8_t opaque_3;
  std::uint8_t mig_enabled;
  unsigned char opaque_4[14];
  unsigned char mig_uuid[16];
};

// CUpti_CallbackData, of driver and runtime calls
struct CallbackData {
  Site site;
  const char* function_name;
  const void* function_parameters;
  void* function_return_value;
  const char* symbol_name;
  Context context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;
  std::uint32_t correlation_id;
};

struct GraphLaunchParameters {  // cuGraphLaunch_params
  GraphExec graph;
};

// cuMemsetD8_v2_params, those of 16 and 32 bits, and the asynchronous ones.
struct MemsetParameters {
  std::uint64_t address;
  unsigned char value[8];
  std::uint64_t count;  // of elements
};

// cuMemsetD2D8_v2_params and so on
struct MemsetRowsParameters {
  std::uint64_t address;
  std::uint64_t pitch;
  unsigned char opaque_1[8];
  std::uint64_t width;  // in elements
  std::uint64_t height;
};

// The parameters of calls that launch kernels, add nodes to graphs or change them, unload code and
// free memory; each begins with these.
struct LaunchParameters {  // cuLaunchKernel_params; without `extra`:
                           // cuLaunchCooperativeKernel_params
  cuda::Function function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  cuda::Stream stream;
  void** parameters;
  void** extra;
};
struct LaunchExParameters {  // cuLaunchKernelEx_params
  const cuda::LaunchConfig* config;
  cuda::Function function;
  void** parameters;
  void** extra;
};
template <class Node>
struct AddedNodeParameters {
  cuda::GraphNode* added;
  cuda::Graph graph;
  const cuda::GraphNode* dependencies;
  std::size_t dependency_count;
  const Node* node;
};
using AddKernelNodeParameters =  // cuGraphAddKernelNode_v2_params
    AddedNodeParameters<cuda::KernelNodeParameters>;
using AddMemsetNodeParameters =  // cuGraphAddMemsetNode_params
    AddedNodeParameters<cuda::MemsetNodeParameters>;
using AddNodeParameters = AddedNodeParameters<cuda::NodeParameters>;  // cuGraphAddNode_params
struct AddNode2Parameters {                                           // cuGraphAddNode_v2_params
  cuda::GraphNode* added;
  cuda::Graph graph;
  const cuda::GraphNode* dependencies;
  const void* dependency_data;
  std::size_t dependency_count;
  const cuda::NodeParameters* node;
};
struct SetKernelNodeParameters {  // cuGraphKernelNodeSetParams_v2_params
  cuda::GraphNode node;
  const cuda::KernelNodeParameters* parameters;
};
struct SetExecKernelNodeParameters {  // cuGraphExecKernelNodeSetParams_v2_params
  cuda::GraphExec executable;
  cuda::GraphNode node;
  const cuda::KernelNodeParameters* parameters;
};
struct SetNodeAttributeParameters {  // cuGraphKernelNodeSetAttribute_params
  cuda::GraphNode node;
  int attribute;
  const void* value;
};
struct CopyNodeAttributesParameters {  // cuGraphKernelNodeCopyAttributes_params
  cuda::GraphNode to;
  cuda::GraphNode from;
};
struct ConditionalHandleParameters {  // cuGraphConditionalHandleCreate_params
  std::uint64_t* handle;              // written by the call
};
struct ModuleUnloadParameters {  // cuModuleUnload_params
  cuda::Module module;
};
struct LibraryUnloadParameters {  // cuLibraryUnload_params
  cuda::Library library;
};
struct FreeParameters {  // cuMemFree_v2_params and so on
  cuda::DevicePtr address;
};
struct UnmapParameters {  // cuMemUnmap_params
  cuda::DevicePtr address;
  std::size_t bytes;
};

// CUpti_ResourceData; for graphs the descriptor is a GraphData, for modules a ModuleData.
struct ResourceData {
  Context context;
  void* handle;
  void* descriptor;
};

struct GraphData {  // CUpti_GraphData
  Graph graph;
  Graph original_graph;
  GraphNode node;
  GraphNode original_node;
  unsigned node_type;
  GraphNode dependency;
  GraphExec graph_exec;
};

struct ModuleData {  // CUpti_ModuleResourceData
  std::uint32_t id;
  std::size_t bytes;
  const char* code;  // a cubin
};

using BufferRequested = void(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using BufferCompleted = void(Context context, std::uint32_t stream_id, std::uint8_t* buffer,
                             std::size_t size, std::size_t valid);
using Callback = void(void* user, Domain domain, std::uint32_t call, const void* data);

namespace fn {

using GetVersion = Result(std::uint32_t* version);
using GetResultString = Result(Result result, const char** text);
using ActivityEnable = Result(ActivityKind kind);
using ActivityDisable = Result(ActivityKind kind);
using ActivityRegisterCallbacks = Result(BufferRequested* requested, BufferCompleted* completed);
using ActivityGetNextRecord = Result(std::uint8_t* buffer, std::size_t valid, Activity** record);
using ActivityGetNumDroppedRecords = Result(Context context, std::uint32_t stream_id,
                                            std::size_t* dropped);
using ActivityFlushAll = Result(std::uint32_t flag);
using Subscribe = Result(Subscriber* subscriber, Callback* callback, void* user);
using Unsubscribe = Result(Subscriber subscriber);
using EnableCallback = Result(std::uint32_t enable, Subscriber subscriber, Domain domain,
                              std::uint32_t call);
using GetGraphNodeId = Result(GraphNode node, std::uint64_t* id);
using GetGraphExecId = Result(GraphExec graph, std::uint32_t* id);

}  // namespace fn
}  // namespace jouleprof::abi::cupti
