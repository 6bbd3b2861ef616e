// Our declarations against the vendor's, where its headers are installed.
#include "abi/rocprofiler_abi.h"

#include <gtest/gtest.h>

namespace jouleprof::abi::rocprofiler {
namespace {

// As AMD documents them for x86-64; the agent's last fields follow those that changed between
// versions.
static_assert(sizeof(DispatchInfo) == 72 && sizeof(KernelDispatch) == 56 + 72);
static_assert(sizeof(MemoryCopy) == 80 && offsetof(MemoryCopy, bytes) == 72);
static_assert(sizeof(CallbackRecord) == 64 && sizeof(CallbackRecord0) == 56);
static_assert(offsetof(Agent, location) == 108 && offsetof(Agent, name) == 248);
static_assert(offsetof(MarkerCall, returned) == 24 && sizeof(RecordHeader) == 16);
static_assert(sizeof(ConfigureResult) == 32);

TEST(RocprofilerAbi, IsTheVendors) {
#if __has_include(<rocprofiler-sdk/registration.h>)
  SUCCEED() << "compared when this was compiled";
#else
  GTEST_SKIP() << "rocprofiler-sdk's headers are not installed";
#endif
}

}  // namespace
}  // namespace jouleprof::abi::rocprofiler

#if __has_include(<rocprofiler-sdk/registration.h>)
#define __HIP_PLATFORM_AMD__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/marker/api_id.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/version.h>
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
#include <rocprofiler-sdk/context.h>
#include <rocprofiler-sdk/rocprofiler.h>
#endif
#pragma GCC diagnostic pop

#include "tests/support/same_abi.h"

namespace jouleprof::abi::rocprofiler {
namespace {

SAME_VALUE(kSuccess, ROCPROFILER_STATUS_SUCCESS);
SAME_VALUE(kCategoryTracing, ROCPROFILER_BUFFER_CATEGORY_TRACING);
SAME_VALUE(kBufferMemoryCopy, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY);
SAME_VALUE(kBufferKernelDispatch, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
SAME_VALUE(kPolicyLossless, ROCPROFILER_BUFFER_POLICY_LOSSLESS);
SAME_VALUE(kCallbackMarker, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API);
SAME_VALUE(kCallbackCodeObject, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
SAME_VALUE(kKernelSymbol, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
SAME_VALUE(kRangePush, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA);
SAME_VALUE(kRangePop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop);
SAME_VALUE(kRangeStart, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA);
SAME_VALUE(kRangeStop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop);
SAME_VALUE(kPhaseEnter, ROCPROFILER_CALLBACK_PHASE_ENTER);
SAME_VALUE(kPhaseExit, ROCPROFILER_CALLBACK_PHASE_EXIT);
SAME_VALUE(CopyKind::kHostToHost, ROCPROFILER_MEMORY_COPY_HOST_TO_HOST);
SAME_VALUE(CopyKind::kHostToDevice, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
SAME_VALUE(CopyKind::kDeviceToHost, ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
SAME_VALUE(CopyKind::kDeviceToDevice, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE);
SAME_VALUE(kRequestMemoryCopy, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY);
SAME_VALUE(kRequestKernelDispatch, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH);
SAME_VALUE(AgentType::kGpu, ROCPROFILER_AGENT_TYPE_GPU);
SAME_VALUE(kAgentVersion, ROCPROFILER_AGENT_INFO_VERSION_0);

SAME_MEMBER(DispatchInfo, agent, rocprofiler_kernel_dispatch_info_t, agent_id);
SAME_MEMBER(DispatchInfo, queue, rocprofiler_kernel_dispatch_info_t, queue_id);
SAME_MEMBER(DispatchInfo, kernel, rocprofiler_kernel_dispatch_info_t, kernel_id);
SAME_MEMBER(DispatchInfo, workgroup, rocprofiler_kernel_dispatch_info_t, workgroup_size);
SAME_MEMBER(DispatchInfo, grid, rocprofiler_kernel_dispatch_info_t, grid_size);
using Dispatch = rocprofiler_buffer_tracing_kernel_dispatch_record_t;
SAME_MEMBER(KernelDispatch, size, Dispatch, size);
SAME_MEMBER(KernelDispatch, correlation, Dispatch, correlation_id);
SAME_MEMBER(KernelDispatch, start, Dispatch, start_timestamp);
SAME_MEMBER(KernelDispatch, end, Dispatch, end_timestamp);
static_assert(offsetof(KernelDispatch, info) == offsetof(Dispatch, dispatch_info));
// Copies of the headers in other packages lack some.
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
using Copy = rocprofiler_buffer_tracing_memory_copy_record_t;
SAME_MEMBER(MemoryCopy, operation, Copy, operation);
SAME_MEMBER(MemoryCopy, correlation, Copy, correlation_id);
SAME_MEMBER(MemoryCopy, start, Copy, start_timestamp);
SAME_MEMBER(MemoryCopy, end, Copy, end_timestamp);
SAME_MEMBER(MemoryCopy, destination, Copy, dst_agent_id);
SAME_MEMBER(MemoryCopy, source, Copy, src_agent_id);
SAME_MEMBER(MemoryCopy, bytes, Copy, bytes);
#endif
using Symbol = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
SAME_MEMBER(KernelSymbol, kernel, Symbol, kernel_id);
SAME_MEMBER(KernelSymbol, name, Symbol, kernel_name);
SAME_MEMBER(MarkerCall, arguments, rocprofiler_callback_tracing_marker_api_data_t, args);
SAME_MEMBER(MarkerCall, returned, rocprofiler_callback_tracing_marker_api_data_t, retval);
SAME_MEMBER(Agent, id, rocprofiler_agent_t, id);
SAME_MEMBER(Agent, type, rocprofiler_agent_t, type);
SAME_MEMBER(Agent, vendor_id, rocprofiler_agent_t, vendor_id);
SAME_MEMBER(Agent, location, rocprofiler_agent_t, location_id);
SAME_MEMBER(Agent, domain, rocprofiler_agent_t, domain);
SAME_MEMBER(Agent, render_minor, rocprofiler_agent_t, drm_render_minor);
SAME_MEMBER(Agent, name, rocprofiler_agent_t, name);
SAME_MEMBER(Agent, product_name, rocprofiler_agent_t, product_name);
SAME_SIZE(ConfigureResult, rocprofiler_tool_configure_result_t);
SAME_SIZE(RecordHeader, rocprofiler_record_header_t);
#if defined(ROCPROFILER_VERSION_MAJOR) && ROCPROFILER_VERSION_MAJOR >= 1
SAME_SIZE(CallbackRecord, rocprofiler_callback_tracing_record_t);
#else
SAME_SIZE(CallbackRecord0, rocprofiler_callback_tracing_record_t);
#endif

// Attributes of a function are no part of how it is called.
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define SAME_FUNCTION(ours, theirs) static_assert(SameFunction<fn::ours, decltype(theirs)>::value)
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
SAME_FUNCTION(CreateContext, rocprofiler_create_context);
SAME_FUNCTION(StartContext, rocprofiler_start_context);
SAME_FUNCTION(StopContext, rocprofiler_stop_context);
SAME_FUNCTION(GetTimestamp, rocprofiler_get_timestamp);
#endif
SAME_FUNCTION(CreateBuffer, rocprofiler_create_buffer);
SAME_FUNCTION(FlushBuffer, rocprofiler_flush_buffer);
SAME_FUNCTION(ConfigureBufferTracingService, rocprofiler_configure_buffer_tracing_service);
SAME_FUNCTION(ConfigureCallbackTracingService, rocprofiler_configure_callback_tracing_service);
SAME_FUNCTION(ConfigureExternalCorrelationIdRequestService,
              rocprofiler_configure_external_correlation_id_request_service);
SAME_FUNCTION(QueryAvailableAgents, rocprofiler_query_available_agents);

}  // namespace
}  // namespace jouleprof::abi::rocprofiler
#endif
