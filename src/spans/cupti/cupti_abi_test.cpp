// Our declarations against the vendor's, where its headers are installed.
#include "abi/cupti_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cupti.h>
#pragma GCC diagnostic pop

#include <type_traits>

#include "tests/support/same_abi.h"

namespace jouleprof::abi::cupti {
namespace {

SAME_VALUE(Result::kSuccess, CUPTI_SUCCESS);
SAME_VALUE(Result::kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME_VALUE(Result::kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(Result::kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(Result::kInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME_VALUE(Result::kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(Result::kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(Result::kMultipleSubscribersNotSupported,
           CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_VALUE(Result::kVirtualizedDeviceInsufficientPrivileges,
           CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(Result::kUnknown, CUPTI_ERROR_UNKNOWN);
static_assert(sizeof(Result) == sizeof(CUptiResult));

SAME_VALUE(ActivityKind::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_VALUE(ActivityKind::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_VALUE(ActivityKind::kKernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_VALUE(ActivityKind::kDevice, CUPTI_ACTIVITY_KIND_DEVICE);
SAME_VALUE(ActivityKind::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_VALUE(ActivityKind::kMemcpy2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_VALUE(ActivityKind::kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
static_assert(sizeof(ActivityKind) == sizeof(CUpti_ActivityKind));
SAME_VALUE(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(Domain::kDriverApi, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(Domain::kRuntimeApi, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME_VALUE(Domain::kResource, CUPTI_CB_DOMAIN_RESOURCE);
static_assert(sizeof(Domain) == sizeof(CUpti_CallbackDomain));
SAME_VALUE(Site::kEnter, CUPTI_API_ENTER);
SAME_VALUE(Site::kExit, CUPTI_API_EXIT);
SAME_VALUE(ResourceCall::kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME_VALUE(ResourceCall::kGraphNodeDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME_VALUE(ResourceCall::kGraphExecCreateStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
SAME_VALUE(ResourceCall::kGraphExecDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME_VALUE(ResourceCall::kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

#define SAME_DRIVER_CALL(ours, theirs) \
  SAME_VALUE(DriverCall::ours, CUPTI_DRIVER_TRACE_CBID_##theirs)
SAME_DRIVER_CALL(kLaunchKernel, cuLaunchKernel);
SAME_DRIVER_CALL(kLaunchKernelPtsz, cuLaunchKernel_ptsz);
SAME_DRIVER_CALL(kLaunchCooperativeKernel, cuLaunchCooperativeKernel);
SAME_DRIVER_CALL(kLaunchCooperativeKernelPtsz, cuLaunchCooperativeKernel_ptsz);
SAME_DRIVER_CALL(kLaunchKernelEx, cuLaunchKernelEx);
SAME_DRIVER_CALL(kLaunchKernelExPtsz, cuLaunchKernelEx_ptsz);
SAME_DRIVER_CALL(kGraphLaunch, cuGraphLaunch);
SAME_DRIVER_CALL(kGraphLaunchPtsz, cuGraphLaunch_ptsz);
SAME_DRIVER_CALL(kGraphInstantiate, cuGraphInstantiate);
SAME_DRIVER_CALL(kGraphInstantiate2, cuGraphInstantiate_v2);
SAME_DRIVER_CALL(kGraphInstantiateWithFlags, cuGraphInstantiateWithFlags);
SAME_DRIVER_CALL(kGraphInstantiateWithParams, cuGraphInstantiateWithParams);
SAME_DRIVER_CALL(kGraphInstantiateWithParamsPtsz, cuGraphInstantiateWithParams_ptsz);
SAME_DRIVER_CALL(kGraphAddKernelNode2, cuGraphAddKernelNode_v2);
SAME_DRIVER_CALL(kGraphKernelNodeSetParams2, cuGraphKernelNodeSetParams_v2);
SAME_DRIVER_CALL(kGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams);
SAME_DRIVER_CALL(kGraphExecUpdate, cuGraphExecUpdate);
SAME_DRIVER_CALL(kGraphConditionalHandleCreate, cuGraphConditionalHandleCreate);
SAME_DRIVER_CALL(kGraphExecUpdate2, cuGraphExecUpdate_v2);
SAME_DRIVER_CALL(kGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams);
SAME_DRIVER_CALL(kGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams);
SAME_DRIVER_CALL(kGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams);
SAME_DRIVER_CALL(kGraphExecNodeSetParams, cuGraphExecNodeSetParams);
SAME_DRIVER_CALL(kGraphExecKernelNodeSetParams2, cuGraphExecKernelNodeSetParams_v2);
SAME_DRIVER_CALL(kGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute);
SAME_DRIVER_CALL(kGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes);
SAME_DRIVER_CALL(kGraphAddMemsetNode, cuGraphAddMemsetNode);
SAME_DRIVER_CALL(kGraphAddNode, cuGraphAddNode);
SAME_DRIVER_CALL(kGraphAddNode2, cuGraphAddNode_v2);
SAME_DRIVER_CALL(kModuleUnload, cuModuleUnload);
SAME_DRIVER_CALL(kLibraryUnload, cuLibraryUnload);
SAME_DRIVER_CALL(kMemFree2, cuMemFree_v2);
SAME_DRIVER_CALL(kMemFreeAsync, cuMemFreeAsync);
SAME_DRIVER_CALL(kMemFreeAsyncPtsz, cuMemFreeAsync_ptsz);
SAME_DRIVER_CALL(kMemUnmap, cuMemUnmap);
SAME_DRIVER_CALL(kMemcpyHtoD, cuMemcpyHtoD_v2);
SAME_DRIVER_CALL(kMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
SAME_DRIVER_CALL(kMemcpyDtoH, cuMemcpyDtoH_v2);
SAME_DRIVER_CALL(kMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
SAME_DRIVER_CALL(kMemcpyDtoD, cuMemcpyDtoD_v2);
SAME_DRIVER_CALL(kMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2);
SAME_DRIVER_CALL(kMemcpyAsync, cuMemcpyAsync);
SAME_DRIVER_CALL(kMemcpyHtoDAsyncPtsz, cuMemcpyHtoDAsync_v2_ptsz);
SAME_DRIVER_CALL(kMemcpyDtoHAsyncPtsz, cuMemcpyDtoHAsync_v2_ptsz);
SAME_DRIVER_CALL(kMemcpyDtoDAsyncPtsz, cuMemcpyDtoDAsync_v2_ptsz);
SAME_DRIVER_CALL(kMemcpyAsyncPtsz, cuMemcpyAsync_ptsz);
#define SAME_MEMSETS(elements)                                             \
  SAME_DRIVER_CALL(kMemset##elements, cuMemset##elements##_v2);            \
  SAME_DRIVER_CALL(kMemset##elements##Ptds, cuMemset##elements##_v2_ptds); \
  SAME_DRIVER_CALL(kMemset##elements##Async, cuMemset##elements##Async);   \
  SAME_DRIVER_CALL(kMemset##elements##AsyncPtsz, cuMemset##elements##Async_ptsz)
SAME_MEMSETS(D8);
SAME_MEMSETS(D16);
SAME_MEMSETS(D32);
SAME_MEMSETS(D2D8);
SAME_MEMSETS(D2D16);
SAME_MEMSETS(D2D32);
#define SAME_PARAMETERS(elements)                                                             \
  SAME_VALUE(offsetof(MemsetParameters, count), offsetof(cuMemset##elements##_v2_params, N)); \
  SAME_VALUE(offsetof(MemsetParameters, count), offsetof(cuMemset##elements##Async_params, N))
SAME_PARAMETERS(D8);
SAME_PARAMETERS(D16);
SAME_PARAMETERS(D32);
#define SAME_ROWS(theirs)                                                     \
  SAME_VALUE(offsetof(MemsetRowsParameters, width), offsetof(theirs, Width)); \
  SAME_VALUE(offsetof(MemsetRowsParameters, height), offsetof(theirs, Height))
SAME_ROWS(cuMemsetD2D8_v2_params);
SAME_ROWS(cuMemsetD2D16_v2_params);
SAME_ROWS(cuMemsetD2D32_v2_params);
SAME_ROWS(cuMemsetD2D8Async_params);
SAME_ROWS(cuMemsetD2D16Async_params);
SAME_ROWS(cuMemsetD2D32Async_params);

#define SAME_RUNTIME_CALL(ours, theirs) \
  SAME_VALUE(RuntimeCall::ours, CUPTI_RUNTIME_TRACE_CBID_##theirs)
SAME_RUNTIME_CALL(kLaunchKernel, cudaLaunchKernel_v7000);
SAME_RUNTIME_CALL(kLaunchKernelPtsz, cudaLaunchKernel_ptsz_v7000);
SAME_RUNTIME_CALL(kLaunchCooperativeKernel, cudaLaunchCooperativeKernel_v9000);
SAME_RUNTIME_CALL(kLaunchCooperativeKernelPtsz, cudaLaunchCooperativeKernel_ptsz_v9000);
SAME_RUNTIME_CALL(kLaunchKernelExC, cudaLaunchKernelExC_v11060);
SAME_RUNTIME_CALL(kLaunchKernelExCPtsz, cudaLaunchKernelExC_ptsz_v11060);
SAME_RUNTIME_CALL(kGraphLaunch, cudaGraphLaunch_v10000);
SAME_RUNTIME_CALL(kGraphLaunchPtsz, cudaGraphLaunch_ptsz_v10000);
#if CUPTI_API_VERSION >= 130000
SAME_RUNTIME_CALL(kLaunchKernel13, __cudaLaunchKernel_v13000);
SAME_RUNTIME_CALL(kLaunchKernel13Ptsz, __cudaLaunchKernel_ptsz_v13000);
#endif
SAME_RUNTIME_CALL(kMemcpyAsync, cudaMemcpyAsync_v3020);
SAME_RUNTIME_CALL(kMemcpyAsyncPtsz, cudaMemcpyAsync_ptsz_v7000);
SAME_RUNTIME_CALL(kMemsetAsync, cudaMemsetAsync_v3020);
SAME_RUNTIME_CALL(kMemsetAsyncPtsz, cudaMemsetAsync_ptsz_v7000);

// The library that is loaded decides which version of a record it writes: the prefix holds for all
// that CUDA 12.0 to 13 write.
#define SAME_KERNEL(theirs)                                                  \
  SAME_MEMBER(ActivityKernel, kind, theirs, kind);                           \
  SAME_MEMBER(ActivityKernel, start, theirs, start);                         \
  SAME_MEMBER(ActivityKernel, end, theirs, end);                             \
  SAME_MEMBER(ActivityKernel, completed, theirs, completed);                 \
  SAME_MEMBER(ActivityKernel, device_id, theirs, deviceId);                  \
  SAME_MEMBER(ActivityKernel, context_id, theirs, contextId);                \
  SAME_MEMBER(ActivityKernel, stream_id, theirs, streamId);                  \
  SAME_MEMBER(ActivityKernel, correlation_id, theirs, correlationId);        \
  SAME_MEMBER(ActivityKernel, grid_id, theirs, gridId);                      \
  SAME_MEMBER(ActivityKernel, name, theirs, name);                           \
  SAME_MEMBER(ActivityKernel, graph_node_id, theirs, graphNodeId);           \
  SAME_MEMBER(ActivityKernel, graph_id, theirs, graphId);                    \
  SAME_VALUE(offsetof(ActivityKernel, grid), offsetof(theirs, gridX));       \
  SAME_VALUE(offsetof(ActivityKernel, grid) + 8, offsetof(theirs, gridZ));   \
  SAME_VALUE(offsetof(ActivityKernel, block), offsetof(theirs, blockX));     \
  SAME_VALUE(offsetof(ActivityKernel, block) + 8, offsetof(theirs, blockZ)); \
  static_assert(sizeof(ActivityKernel) <= sizeof(theirs))
#define SAME_PLACE(ours, theirs)                            \
  SAME_MEMBER(ours, kind, theirs, kind);                    \
  SAME_MEMBER(ours, bytes, theirs, bytes);                  \
  SAME_MEMBER(ours, start, theirs, start);                  \
  SAME_MEMBER(ours, end, theirs, end);                      \
  SAME_MEMBER(ours, device_id, theirs, deviceId);           \
  SAME_MEMBER(ours, context_id, theirs, contextId);         \
  SAME_MEMBER(ours, stream_id, theirs, streamId);           \
  SAME_MEMBER(ours, correlation_id, theirs, correlationId); \
  SAME_MEMBER(ours, graph_node_id, theirs, graphNodeId);    \
  SAME_MEMBER(ours, graph_id, theirs, graphId);             \
  static_assert(sizeof(ours) <= sizeof(theirs))
#define SAME_COPY(theirs)                                    \
  SAME_PLACE(ActivityMemcpy, theirs);                        \
  SAME_MEMBER(ActivityMemcpy, copy_kind, theirs, copyKind);  \
  SAME_MEMBER(ActivityMemcpy, source_kind, theirs, srcKind); \
  SAME_MEMBER(ActivityMemcpy, destination_kind, theirs, dstKind)
#define SAME_PEER_COPY(theirs)                                            \
  SAME_PLACE(ActivityMemcpyPeer, theirs);                                 \
  SAME_MEMBER(ActivityMemcpyPeer, source_device_id, theirs, srcDeviceId); \
  SAME_MEMBER(ActivityMemcpyPeer, destination_device_id, theirs, dstDeviceId)
#define SAME_GRAPH(theirs)                                                \
  SAME_MEMBER(ActivityGraphTrace, kind, theirs, kind);                    \
  SAME_MEMBER(ActivityGraphTrace, correlation_id, theirs, correlationId); \
  SAME_MEMBER(ActivityGraphTrace, start, theirs, start);                  \
  SAME_MEMBER(ActivityGraphTrace, end, theirs, end);                      \
  SAME_MEMBER(ActivityGraphTrace, device_id, theirs, deviceId);           \
  SAME_MEMBER(ActivityGraphTrace, graph_id, theirs, graphId);             \
  SAME_MEMBER(ActivityGraphTrace, context_id, theirs, contextId);         \
  SAME_MEMBER(ActivityGraphTrace, stream_id, theirs, streamId);           \
  static_assert(sizeof(ActivityGraphTrace) <= sizeof(theirs))
#define SAME_DEVICE(theirs)                                       \
  SAME_MEMBER(ActivityDevice, kind, theirs, kind);                \
  SAME_MEMBER(ActivityDevice, id, theirs, id);                    \
  SAME_MEMBER(ActivityDevice, uuid, theirs, uuid);                \
  SAME_MEMBER(ActivityDevice, name, theirs, name);                \
  SAME_MEMBER(ActivityDevice, mig_enabled, theirs, isMigEnabled); \
  SAME_MEMBER(ActivityDevice, mig_uuid, theirs, migUuid);         \
  static_assert(sizeof(ActivityDevice) <= sizeof(theirs))

// Version 12.0's headers have the first of each as its newest; 13.0's have all.
#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
SAME_KERNEL(CUpti_ActivityKernel10);
SAME_COPY(CUpti_ActivityMemcpy5);
SAME_COPY(CUpti_ActivityMemcpy6);
SAME_PEER_COPY(CUpti_ActivityMemcpyPtoP3);
SAME_PEER_COPY(CUpti_ActivityMemcpyPtoP4);
SAME_PLACE(ActivityMemset, CUpti_ActivityMemset3);
SAME_PLACE(ActivityMemset, CUpti_ActivityMemset4);
SAME_GRAPH(CUpti_ActivityGraphTrace);
SAME_GRAPH(CUpti_ActivityGraphTrace2);
SAME_DEVICE(CUpti_ActivityDevice4);
SAME_DEVICE(CUpti_ActivityDevice5);
#else
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_COPY(CUpti_ActivityMemcpy5);
SAME_PEER_COPY(CUpti_ActivityMemcpyPtoP4);
SAME_PLACE(ActivityMemset, CUpti_ActivityMemset4);
SAME_GRAPH(CUpti_ActivityGraphTrace);
SAME_DEVICE(CUpti_ActivityDevice4);
#endif

SAME_MEMBER(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME_MEMBER(CallbackData, context, CUpti_CallbackData, context);
SAME_MEMBER(CallbackData, correlation_id, CUpti_CallbackData, correlationId);
SAME_MEMBER(ResourceData, context, CUpti_ResourceData, context);
SAME_MEMBER(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_MEMBER(ModuleData, bytes, CUpti_ModuleResourceData, cubinSize);
SAME_MEMBER(ModuleData, code, CUpti_ModuleResourceData, pCubin);
SAME_MEMBER(GraphData, graph, CUpti_GraphData, graph);
SAME_MEMBER(GraphData, node, CUpti_GraphData, node);
SAME_MEMBER(GraphData, original_node, CUpti_GraphData, originalNode);
SAME_MEMBER(GraphData, node_type, CUpti_GraphData, nodeType);

SAME_MEMBER(LaunchParameters, function, cuLaunchKernel_params, f);
SAME_VALUE(offsetof(LaunchParameters, grid), offsetof(cuLaunchKernel_params, gridDimX));
SAME_VALUE(offsetof(LaunchParameters, block), offsetof(cuLaunchKernel_params, blockDimX));
SAME_MEMBER(LaunchParameters, shared_bytes, cuLaunchKernel_params, sharedMemBytes);
SAME_MEMBER(LaunchParameters, parameters, cuLaunchKernel_params, kernelParams);
SAME_MEMBER(LaunchParameters, extra, cuLaunchKernel_params, extra);
SAME_VALUE(offsetof(LaunchParameters, parameters),
           offsetof(cuLaunchCooperativeKernel_params, kernelParams));
SAME_MEMBER(LaunchExParameters, config, cuLaunchKernelEx_params, config);
SAME_MEMBER(LaunchExParameters, function, cuLaunchKernelEx_params, f);
SAME_MEMBER(LaunchExParameters, parameters, cuLaunchKernelEx_params, kernelParams);
SAME_MEMBER(LaunchExParameters, extra, cuLaunchKernelEx_params, extra);
SAME_SIZE(cuda::LaunchAttribute, CUlaunchAttribute);
SAME_VALUE(offsetof(cuda::LaunchAttribute, value), offsetof(CUlaunchAttribute, value));
SAME_SIZE(cuda::LaunchConfig, CUlaunchConfig);
SAME_MEMBER(cuda::LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_MEMBER(cuda::LaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_MEMBER(cuda::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(cuda::KernelNodeParameters, CUDA_KERNEL_NODE_PARAMS);
SAME_MEMBER(cuda::KernelNodeParameters, parameters, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_MEMBER(cuda::KernelNodeParameters, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
SAME_MEMBER(cuda::KernelNodeParameters, context, CUDA_KERNEL_NODE_PARAMS, ctx);
SAME_SIZE(cuda::MemsetNodeParameters, CUDA_MEMSET_NODE_PARAMS);
SAME_VALUE(offsetof(cuda::NodeParameters, kernel), offsetof(CUgraphNodeParams, kernel));
SAME_VALUE(offsetof(cuda::NodeParameters, memset), offsetof(CUgraphNodeParams, memset));
SAME_VALUE(cuda::kNodeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(cuda::kNodeMemset, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_VALUE(cuda::kNotReady, CUDA_ERROR_NOT_READY);
SAME_VALUE(cuda::kLaunchCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME_VALUE(cuda::kLaunchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(cuda::kLaunchClusterScheduling,
           CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME_VALUE(cuda::kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(cuda::kMemoryOfDevice, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(cuda::kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_MEMBER(AddKernelNodeParameters, node, cuGraphAddKernelNode_v2_params, nodeParams);
SAME_MEMBER(AddMemsetNodeParameters, node, cuGraphAddMemsetNode_params, memsetParams);
SAME_MEMBER(AddNodeParameters, node, cuGraphAddNode_params, nodeParams);
SAME_MEMBER(AddNode2Parameters, node, cuGraphAddNode_v2_params, nodeParams);
SAME_MEMBER(SetKernelNodeParameters, parameters, cuGraphKernelNodeSetParams_v2_params, nodeParams);
SAME_MEMBER(SetExecKernelNodeParameters, parameters, cuGraphExecKernelNodeSetParams_v2_params,
            nodeParams);
SAME_MEMBER(SetNodeAttributeParameters, value, cuGraphKernelNodeSetAttribute_params, value);
SAME_MEMBER(CopyNodeAttributesParameters, from, cuGraphKernelNodeCopyAttributes_params, src);
SAME_MEMBER(ConditionalHandleParameters, handle, cuGraphConditionalHandleCreate_params,
            pHandle_out);
SAME_MEMBER(UnmapParameters, bytes, cuMemUnmap_params, size);

#define SAME_FUNCTION(name) static_assert(SameFunction<fn::name, decltype(::cupti##name)>::value)
SAME_FUNCTION(GetVersion);
SAME_FUNCTION(GetResultString);
SAME_FUNCTION(ActivityEnable);
SAME_FUNCTION(ActivityDisable);
SAME_FUNCTION(ActivityRegisterCallbacks);
SAME_FUNCTION(ActivityGetNextRecord);
SAME_FUNCTION(ActivityGetNumDroppedRecords);
SAME_FUNCTION(ActivityFlushAll);
SAME_FUNCTION(Subscribe);
SAME_FUNCTION(Unsubscribe);
SAME_FUNCTION(EnableCallback);
SAME_FUNCTION(GetGraphNodeId);
SAME_FUNCTION(GetGraphExecId);
static_assert(
    SameFunction<BufferRequested, std::remove_pointer_t<CUpti_BuffersCallbackRequestFunc>>::value);
static_assert(
    SameFunction<BufferCompleted, std::remove_pointer_t<CUpti_BuffersCallbackCompleteFunc>>::value);
static_assert(SameFunction<Callback, std::remove_pointer_t<CUpti_CallbackFunc>>::value);

TEST(CuptiAbi, MatchesTheVendorsHeaders) { SUCCEED() << "checked while compiling"; }

}  // namespace
}  // namespace jouleprof::abi::cupti
#else
TEST(CuptiAbi, MatchesTheVendorsHeaders) {
  GTEST_SKIP() << "cupti.h is not installed (CUDA toolkit, or pip install nvidia-cuda-cupti)";
}
#endif
