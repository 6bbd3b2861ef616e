// Our declarations against the vendor's, where its header is installed.
#include "abi/nvtx_abi.h"

#include <gtest/gtest.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <nvtx3/nvToolsExt.h>
#pragma GCC diagnostic pop

#include <unistd.h>

#include <cstdlib>
#include <type_traits>

#include "apps/inject/trace.h"
#include "spans/scopes/scopes.h"
#include "tests/support/same_abi.h"

namespace jouleprof::abi::nvtx {
namespace {

SAME_VALUE(Module::kCore, NVTX_CB_MODULE_CORE);
SAME_VALUE(Module::kCore2, NVTX_CB_MODULE_CORE2);
static_assert(sizeof(Module) == sizeof(NvtxCallbackModule));
SAME_VALUE(kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME_VALUE(kRangeStartA, NVTX_CBID_CORE_RangeStartA);
SAME_VALUE(kRangeStartW, NVTX_CBID_CORE_RangeStartW);
SAME_VALUE(kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME_VALUE(kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME_VALUE(kRangePushA, NVTX_CBID_CORE_RangePushA);
SAME_VALUE(kRangePushW, NVTX_CBID_CORE_RangePushW);
SAME_VALUE(kRangePop, NVTX_CBID_CORE_RangePop);
SAME_VALUE(kDomainRangeStartEx, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME_VALUE(kDomainRangeEnd, NVTX_CBID_CORE2_DomainRangeEnd);
SAME_VALUE(kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx);
SAME_VALUE(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME_VALUE(kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME_VALUE(kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME_VALUE(kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME_VALUE(kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW);
SAME_VALUE(kDomainDestroy, NVTX_CBID_CORE2_DomainDestroy);
SAME_VALUE(kTableCallbacks, NVTX_ETID_CALLBACKS);
SAME_VALUE(kNoPushPopTracking, NVTX_NO_PUSH_POP_TRACKING);
SAME_VALUE(MessageType::kUnknown, NVTX_MESSAGE_UNKNOWN);
SAME_VALUE(MessageType::kAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME_VALUE(MessageType::kUnicode, NVTX_MESSAGE_TYPE_UNICODE);
SAME_VALUE(MessageType::kRegistered, NVTX_MESSAGE_TYPE_REGISTERED);

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t));
SAME_MEMBER(EventAttributes, version, nvtxEventAttributes_t, version);
SAME_MEMBER(EventAttributes, size, nvtxEventAttributes_t, size);
SAME_MEMBER(EventAttributes, category, nvtxEventAttributes_t, category);
SAME_MEMBER(EventAttributes, payload, nvtxEventAttributes_t, payload);
SAME_MEMBER(EventAttributes, message_type, nvtxEventAttributes_t, messageType);
SAME_MEMBER(EventAttributes, message, nvtxEventAttributes_t, message);
SAME_MEMBER(CallbackTable, struct_size, NvtxExportTableCallbacks, struct_size);
SAME_MEMBER(CallbackTable, get_module_functions, NvtxExportTableCallbacks, GetModuleFunctionTable);

#define SAME_FUNCTION(name) static_assert(SameFunction<fn::name, decltype(::nvtx##name)>::value)
static_assert(std::is_same_v<RangeId, nvtxRangeId_t>);
SAME_FUNCTION(RangeStartEx);
SAME_FUNCTION(RangeStartA);
SAME_FUNCTION(RangeStartW);
SAME_FUNCTION(RangeEnd);
SAME_FUNCTION(DomainRangeStartEx);
SAME_FUNCTION(DomainRangeEnd);
SAME_FUNCTION(RangePushEx);
SAME_FUNCTION(RangePushA);
SAME_FUNCTION(RangePushW);
SAME_FUNCTION(RangePop);
SAME_FUNCTION(DomainRangePushEx);
SAME_FUNCTION(DomainRangePop);
SAME_FUNCTION(DomainRegisterStringA);
SAME_FUNCTION(DomainRegisterStringW);
SAME_FUNCTION(DomainCreateA);
SAME_FUNCTION(DomainCreateW);
SAME_FUNCTION(DomainDestroy);

TEST(NvtxAbi, MatchesTheVendorsHeader) { SUCCEED() << "checked while compiling"; }

// A client of NVTX as the vendor's headers make it, with the built library injected.
TEST(NvtxAbi, TheRealClientTakesOurFunctions) {
  setenv("NVTX_INJECTION64_PATH", JOULEPROF_INJECT, 1);
  EXPECT_EQ(nvtxRangePushA("outer"), 0);
  EXPECT_EQ(nvtxRangePushW(L"inner"), 1);
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "third";
  EXPECT_EQ(nvtxRangePushEx(&attributes), 2);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  EXPECT_NE(domain, nullptr);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "call");
  EXPECT_NE(attributes.message.registered, nullptr);
  EXPECT_EQ(nvtxDomainRangePushEx(domain, &attributes), 0);
  EXPECT_EQ(nvtxDomainRangePop(domain), 0);
  EXPECT_LT(nvtxDomainRangePop(domain), 0);
  EXPECT_EQ(nvtxRangePop(), 2);
  EXPECT_EQ(nvtxRangePop(), 1);
  EXPECT_EQ(nvtxRangePop(), 0);
  EXPECT_LT(nvtxRangePop(), 0);
  nvtxMarkA("a mark is no range");
  const nvtxRangeId_t started = nvtxRangeStartA("started");
  const nvtxRangeId_t wide = nvtxRangeStartW(L"and another");
  const nvtxRangeId_t theirs = nvtxDomainRangeStartEx(domain, &attributes);
  EXPECT_NE(started, 0U);
  EXPECT_NE(started, wide);
  EXPECT_NE(wide, theirs);
  EXPECT_EQ(nvtxRangePushA("within"), 0);
  nvtxRangeEnd(started);
  nvtxDomainRangeEnd(domain, theirs);
  EXPECT_EQ(nvtxRangePop(), 0);
  nvtxRangeEnd(wide);
  nvtxDomainDestroy(domain);
}

}  // namespace
}  // namespace jouleprof::abi::nvtx
#else
TEST(NvtxAbi, MatchesTheVendorsHeader) {
  GTEST_SKIP() << "nvtx3/nvToolsExt.h is not installed (CUDA toolkit, or pip install nvidia-nvtx)";
}
#endif
