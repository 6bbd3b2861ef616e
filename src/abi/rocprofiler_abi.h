// rocprofiler-sdk's C ABI: the part that tracing kernels needs, declared by hand from AMD's
// published interface (https://rocm.docs.amd.com/projects/rocprofiler-sdk), so that nothing of
// AMD's is needed to build. Layouts and numbers are checked against the vendor's headers where
// those are installed (spans/rocm/rocprofiler_abi_test.cpp).
//
// The loaded library decides which version of a record it writes. What is declared of a record is a
// prefix that versions 0.6 (ROCm 6.4) to 1.x have in common; records say how long they are.
// "rocprofiler_" before a name in `fn`, in lower case, is the exported symbol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jouleprof::abi::rocprofiler {

// 10000 * major + 100 * minor + patch, as the library hands it over.
inline constexpr std::uint32_t kOldestVersion = 600;
inline constexpr std::uint32_t kVersion1 = 10000;
inline constexpr std::uint32_t kVersion2 = 20000;

using Status = int;  // rocprofiler_status_t
inline constexpr Status kSuccess = 0;

// rocprofiler_context_id_t and so on: handles of their own types.
struct Context {
  std::uint64_t handle;
};
struct Buffer {
  std::uint64_t handle;
};
struct AgentId {
  std::uint64_t handle;
};

struct Size3 {  // rocprofiler_dim3_t
  std::uint32_t x, y, z;
};

struct AsyncCorrelation {  // rocprofiler_async_correlation_id_t; before 1.0 of all records
  std::uint64_t internal;
  std::uint64_t external;
};
struct Correlation {  // rocprofiler_correlation_id_t from 1.0 on
  std::uint64_t internal;
  std::uint64_t external;
  std::uint64_t ancestor;
};

// rocprofiler_buffer_category_t, rocprofiler_buffer_tracing_kind_t, rocprofiler_buffer_policy_t
inline constexpr std::uint32_t kCategoryTracing = 1;
inline constexpr int kBufferMemoryCopy = 10;
inline constexpr int kBufferKernelDispatch = 11;
inline constexpr int kPolicyLossless = 2;

// rocprofiler_callback_tracing_kind_t, and operations of those
inline constexpr int kCallbackMarker = 7;
inline constexpr int kCallbackCodeObject = 10;
inline constexpr std::int32_t kKernelSymbol =
    2;                                         // ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_...
inline constexpr std::int32_t kRangePush = 1;  // ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA
inline constexpr std::int32_t kRangePop = 2;
inline constexpr std::int32_t kRangeStart = 3;
inline constexpr std::int32_t kRangeStop = 4;

// rocprofiler_callback_phase_t
inline constexpr int kPhaseEnter = 1;  // of a code object: it was loaded
inline constexpr int kPhaseExit = 2;

// rocprofiler_memory_copy_operation_t
enum class CopyKind : int {
  kHostToHost = 1,
  kHostToDevice = 2,
  kDeviceToHost = 3,
  kDeviceToDevice = 4,
};

// rocprofiler_external_correlation_id_request_kind_t
inline constexpr int kRequestMemoryCopy = 10;
inline constexpr int kRequestKernelDispatch = 11;

struct RecordHeader {  // rocprofiler_record_header_t
  std::uint32_t category;
  std::uint32_t kind;
  const void* payload;
};

struct DispatchInfo {  // rocprofiler_kernel_dispatch_info_t
  std::uint64_t size;  // without what is reserved
  AgentId agent;
  std::uint64_t queue;
  std::uint64_t kernel;
  std::uint64_t dispatch;
  std::uint32_t private_bytes;
  std::uint32_t group_bytes;
  Size3 workgroup;  // work items of a group
  Size3 grid;       // work items of all
};

// Stamps in nanoseconds of the library's clock (fn::GetTimestamp).

struct KernelDispatch {  // rocprofiler_buffer_tracing_kernel_dispatch_record_t
  std::uint64_t size;
  int kind;
  int operation;
  AsyncCorrelation correlation;
  std::uint64_t thread;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};

struct MemoryCopy {  // rocprofiler_buffer_tracing_memory_copy_record_t
  std::uint64_t size;
  int kind;
  CopyKind operation;
  AsyncCorrelation correlation;
  std::uint64_t thread;
  std::uint64_t start;
  std::uint64_t end;
  AgentId destination;
  AgentId source;
  std::uint64_t bytes;
};

template <class Id>
struct CallbackRecordOf {  // rocprofiler_callback_tracing_record_t
  Context context;
  std::uint64_t thread;
  Id correlation;
  int kind;
  std::int32_t operation;
  int phase;
  void* payload;
};
using CallbackRecord = CallbackRecordOf<Correlation>;
using CallbackRecord0 = CallbackRecordOf<AsyncCorrelation>;  // before 1.0

struct KernelSymbol {  // rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t
  std::uint64_t size;
  std::uint64_t kernel;
  std::uint64_t code_object;
  const char* name;
};

struct MarkerCall {  // rocprofiler_callback_tracing_marker_api_data_t
  std::uint64_t size;
  union {
    const char* message;
    std::uint64_t range;
    std::uint64_t opaque[2];
  } arguments;
  std::uint64_t returned;  // of a range that starts
};

enum class AgentType : int { kCpu = 1, kGpu = 2 };

struct Agent {  // rocprofiler_agent_v0_t
  std::uint64_t size;
  AgentId id;
  AgentType type;
  std::uint32_t opaque_1[21];
  std::uint16_t vendor_id;
  std::uint16_t device_id;
  std::uint32_t location;  // function in bits 0 to 2, device in 3 to 7, bus in 8 to 15
  std::uint32_t domain;    // of PCI
  std::uint32_t render_minor;
  unsigned char opaque_2[128];
  const char* name;  // "gfx942"
  const char* vendor_name;
  const char* product_name;
  const char* model_name;
};
inline constexpr int kAgentVersion = 1;  // ROCPROFILER_AGENT_INFO_VERSION_0

using BufferCallback = void(Context context, Buffer buffer, RecordHeader** headers,
                            std::size_t count, void* data, std::uint64_t dropped);
using Callback = void(CallbackRecord record, std::uint64_t* user, void* data);
using Callback0 = void(CallbackRecord0 record, std::uint64_t* user, void* data);
using AgentsCallback = Status(int version, const void** agents, std::size_t count, void* data);
// Returns 0 where it sets `external`.
using CorrelationRequest = int(std::uint64_t thread, Context context, int kind,
                               std::int32_t operation, std::uint64_t internal,
                               std::uint64_t* external, void* data);

struct ConfigureResult {  // rocprofiler_tool_configure_result_t
  std::size_t size;
  int (*initialize)(void* finalize, void* data);
  void (*finalize)(void* data);
  void* data;
};

namespace fn {

using Configure = ConfigureResult*(std::uint32_t version, const char* text, std::uint32_t priority,
                                   void* client);  // a tool exports it
using CreateContext = Status(Context* context);
using StartContext = Status(Context context);
using StopContext = Status(Context context);
using CreateBuffer = Status(Context context, std::size_t bytes, std::size_t watermark, int policy,
                            BufferCallback* callback, void* data, Buffer* buffer);
using FlushBuffer = Status(Buffer buffer);  // returns when the callback has
using ConfigureBufferTracingService = Status(Context context, int kind,
                                             const std::int32_t* operations, std::size_t count,
                                             Buffer buffer);
// `callback`: a Callback, or a Callback0.
using ConfigureCallbackTracingService = Status(Context context, int kind,
                                               const std::int32_t* operations, std::size_t count,
                                               void (*callback)(), void* data);
using ConfigureExternalCorrelationIdRequestService = Status(Context context, const int* kinds,
                                                            std::size_t count,
                                                            CorrelationRequest* callback,
                                                            void* data);
using QueryAvailableAgents = Status(int version, AgentsCallback* callback, std::size_t agent_size,
                                    void* data);
using GetTimestamp = Status(std::uint64_t* stamp);
using GetStatusString = const char*(Status status);

}  // namespace fn
}  // namespace jouleprof::abi::rocprofiler
