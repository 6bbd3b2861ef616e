#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

#include "abi/nvtx_abi.h"
#include "apps/inject/trace.h"
#include "recording/spool/spool_reader.h"
#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::inject {
namespace {

// NVTX's client, in miniature: places that only we may fill.
struct NvtxClient {
  std::array<abi::nvtx::Function, 16> core{};
  std::array<abi::nvtx::Function, 16> core2{};
  std::array<abi::nvtx::Function*, 16> core_places{};
  std::array<abi::nvtx::Function*, 16> core2_places{};
  abi::nvtx::CallbackTable callbacks{sizeof(abi::nvtx::CallbackTable), module_functions};
  unsigned size = 16;

  static NvtxClient*& now() {
    static NvtxClient* client = nullptr;
    return client;
  }
  NvtxClient() {
    now() = this;
    for (std::size_t i = 1; i != 16; ++i) {
      core_places[i] = &core[i];
      core2_places[i] = &core2[i];
    }
  }
  static int module_functions(abi::nvtx::Module module, abi::nvtx::FunctionTable* table,
                              unsigned* size) {
    *table =
        module == abi::nvtx::Module::kCore ? now()->core_places.data() : now()->core2_places.data();
    *size = now()->size;
    return 1;
  }
  static const void* export_table(std::uint32_t id) {
    return id == 1 ? &now()->callbacks : nullptr;
  }

  template <typename F>
  F* core_function(unsigned id) const {
    return reinterpret_cast<F*>(core[id]);
  }
  template <typename F>
  F* domain_function(unsigned id) const {
    return reinterpret_cast<F*>(core2[id]);
  }
};

TEST(NvtxHooks, RangesBecomeTheThreadsScope) {
  NvtxClient client;
  ASSERT_TRUE(fill_nvtx(NvtxClient::export_table));
  const auto push = client.core_function<abi::nvtx::fn::RangePushA>(abi::nvtx::kRangePushA);
  const auto wide = client.core_function<abi::nvtx::fn::RangePushW>(abi::nvtx::kRangePushW);
  const auto push_ex = client.core_function<abi::nvtx::fn::RangePushEx>(abi::nvtx::kRangePushEx);
  const auto pop = client.core_function<abi::nvtx::fn::RangePop>(abi::nvtx::kRangePop);
  const std::uint32_t none = scopes::this_thread().range;
  EXPECT_EQ(push("a"), 0);
  const auto a = scopes::this_thread().range;
  EXPECT_EQ(wide(L"\u00e9\u20ac\U0001F600"), 1);
  const auto w = scopes::this_thread().range;
  abi::nvtx::EventAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.message_type = abi::nvtx::MessageType::kRegistered;
  attributes.message.registered = client.domain_function<abi::nvtx::fn::DomainRegisterStringA>(
      abi::nvtx::kDomainRegisterStringA)(nullptr, "known");
  EXPECT_EQ(push_ex(&attributes), 2);
  const auto known = scopes::this_thread().range;
  EXPECT_EQ(push_ex(nullptr), 3);
  EXPECT_EQ(push(nullptr), 4);
  attributes.size = 8;  // an older structure, without a message
  EXPECT_EQ(push_ex(&attributes), 5);
  for (int level = 5; level >= 0; --level) EXPECT_EQ(pop(), level);
  EXPECT_LT(pop(), 0);
  EXPECT_EQ(scopes::this_thread().range, none);
  spool::TraceSink reported;
  scopes::send_all_again();
  scopes::send(reported);
  EXPECT_EQ(reported.trace.ranges.at(a).name, "a");
  EXPECT_EQ(reported.trace.ranges.at(w), (model::Range{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", a}));
  EXPECT_EQ(reported.trace.ranges.at(known), (model::Range{"known", w}));
  // Other functions of the client are unchanged.
  EXPECT_EQ(client.core[1], nullptr);
  EXPECT_EQ(client.core[12], nullptr);
}

TEST(NvtxHooks, StartedRangesEndInAnyOrderAndThread) {
  namespace nvtx = abi::nvtx;
  NvtxClient client;
  ASSERT_TRUE(fill_nvtx(NvtxClient::export_table));
  const auto start = client.core_function<nvtx::fn::RangeStartA>(nvtx::kRangeStartA);
  const auto wide = client.core_function<nvtx::fn::RangeStartW>(nvtx::kRangeStartW);
  const auto start_ex = client.core_function<nvtx::fn::RangeStartEx>(nvtx::kRangeStartEx);
  const auto end = client.core_function<nvtx::fn::RangeEnd>(nvtx::kRangeEnd);
  const auto domain_start =
      client.domain_function<nvtx::fn::DomainRangeStartEx>(nvtx::kDomainRangeStartEx);
  const auto domain_end = client.domain_function<nvtx::fn::DomainRangeEnd>(nvtx::kDomainRangeEnd);
  abi::nvtx::EventAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.message_type = nvtx::MessageType::kAscii;
  attributes.message.ascii = "named";
  const auto name = [] {
    scopes::drop_ended_ranges();
    spool::TraceSink reported;
    scopes::send_all_again();
    scopes::send(reported);
    std::string path;
    for (auto at = scopes::this_thread().range; at != model::kNone;) {
      path = "/" + reported.trace.ranges.at(at).name + path;
      at = reported.trace.ranges.at(at).parent;
    }
    return path;
  };
  const int domain = 0;
  const auto a = start("a");
  const auto w = wide(L"w");
  const auto n = start_ex(&attributes);
  const auto d = domain_start(&domain, &attributes);
  EXPECT_EQ(name(), "/a/w/named/named");
  std::thread([&] { end(a); }).join();
  EXPECT_EQ(name(), "/w/named/named");
  domain_end(&domain, d);
  EXPECT_EQ(name(), "/w/named");
  end(w);
  end(w);
  EXPECT_EQ(name(), "/named");
  end(n);
  EXPECT_EQ(name(), "");
}

TEST(NvtxHooks, AnOlderClientHasFewerPlaces) {
  NvtxClient client;
  client.size = 9;
  client.core_places[8] = nullptr;
  EXPECT_TRUE(fill_nvtx(NvtxClient::export_table));
  EXPECT_EQ(client.core[9], nullptr);
  client.callbacks.struct_size = 8;
  EXPECT_FALSE(fill_nvtx(NvtxClient::export_table));
  EXPECT_FALSE(fill_nvtx([](std::uint32_t) -> const void* { return nullptr; }));
  EXPECT_FALSE(fill_nvtx(nullptr));
}

}  // namespace
}  // namespace jouleprof::inject
