// NVTX's C ABI (version 3) as an injected library meets it, declared by hand from NVIDIA's
// published headers (https://github.com/NVIDIA/NVTX), so that nothing of NVIDIA's is needed to
// build. Checked against the vendor's headers where those are installed
// (apps/inject/nvtx_abi_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace jouleprof::abi::nvtx {

// NvtxCallbackModule
enum class Module : unsigned { kCore = 1, kCore2 = 5 };

// NvtxCallbackIdCore: places in the core module's table.
inline constexpr unsigned kRangeStartEx = 4;
inline constexpr unsigned kRangeStartA = 5;
inline constexpr unsigned kRangeStartW = 6;
inline constexpr unsigned kRangeEnd = 7;
inline constexpr unsigned kRangePushEx = 8;
inline constexpr unsigned kRangePushA = 9;
inline constexpr unsigned kRangePushW = 10;
inline constexpr unsigned kRangePop = 11;

// NvtxCallbackIdCore2: places in the domain functions' table.
inline constexpr unsigned kDomainRangeStartEx = 2;
inline constexpr unsigned kDomainRangeEnd = 3;
inline constexpr unsigned kDomainRangePushEx = 4;
inline constexpr unsigned kDomainRangePop = 5;
inline constexpr unsigned kDomainRegisterStringA = 10;
inline constexpr unsigned kDomainRegisterStringW = 11;
inline constexpr unsigned kDomainCreateA = 12;
inline constexpr unsigned kDomainCreateW = 13;
inline constexpr unsigned kDomainDestroy = 14;

inline constexpr std::uint32_t kTableCallbacks = 1;  // NVTX_ETID_CALLBACKS
inline constexpr int kNoPushPopTracking = -2;        // NVTX_NO_PUSH_POP_TRACKING

// nvtxMessageType_t
enum class MessageType : std::int32_t { kUnknown = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

union Message {  // nvtxMessageValue_t
  const char* ascii;
  const wchar_t* unicode;
  const void* registered;
};

struct EventAttributes {  // nvtxEventAttributes_t
  std::uint16_t version;
  std::uint16_t size;  // of this structure, in the version of the caller
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  MessageType message_type;
  Message message;
};

using Domain = const void*;     // nvtxDomainHandle_t; null: the default domain
using String = const void*;     // nvtxStringHandle_t
using RangeId = std::uint64_t;  // nvtxRangeId_t

using Function = void (*)();
using FunctionTable = Function**;  // places of function pointers, by identifier

struct CallbackTable {  // NvtxExportTableCallbacks
  std::size_t struct_size;
  int (*get_module_functions)(Module module, FunctionTable* table, unsigned* size);
};

using GetExportTable = const void*(std::uint32_t id);

namespace fn {

using RangeStartEx = RangeId(const EventAttributes* attributes);
using RangeStartA = RangeId(const char* message);
using RangeStartW = RangeId(const wchar_t* message);
using RangeEnd = void(RangeId id);
using RangePushEx = int(const EventAttributes* attributes);
using RangePushA = int(const char* message);
using RangePushW = int(const wchar_t* message);
using RangePop = int();
using DomainRangeStartEx = RangeId(Domain domain, const EventAttributes* attributes);
using DomainRangeEnd = void(Domain domain, RangeId id);
using DomainRangePushEx = int(Domain domain, const EventAttributes* attributes);
using DomainRangePop = int(Domain domain);
using DomainRegisterStringA = String(Domain domain, const char* text);
using DomainRegisterStringW = String(Domain domain, const wchar_t* text);
using DomainCreateA = Domain(const char* name);
using DomainCreateW = Domain(const wchar_t* name);
using DomainDestroy = void(Domain domain);

}  // namespace fn
}  // namespace jouleprof::abi::nvtx
