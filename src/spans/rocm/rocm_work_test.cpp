// The tracer over a fabricated rocprofiler-sdk.
#include "spans/rocm/rocm_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "spans/cupti/tracer_fixture.h"
#include "spans/rocm/rocprofiler_fixture.h"
#include "spans/scopes/scopes.h"
#include "spans/scopes/scopes_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::rocm {
namespace {

namespace abi = abi::rocprofiler;
using cupti::MemorySink;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMs = 1'000'000;

RocprofilerApi fake_api(std::uint32_t version) {
  RocprofilerApi api;
  api.create_context = &FakeRocprofiler::create_context;
  api.start_context = &FakeRocprofiler::start_context;
  api.stop_context = &FakeRocprofiler::stop_context;
  api.create_buffer = &FakeRocprofiler::create_buffer;
  api.flush_buffer = &FakeRocprofiler::flush_buffer;
  api.buffer_tracing = &FakeRocprofiler::buffer_tracing;
  api.callback_tracing = &FakeRocprofiler::callback_tracing;
  api.agents = &FakeRocprofiler::agents;
  api.timestamp = &FakeRocprofiler::timestamp;
  api.correlation = &FakeRocprofiler::correlation;
  api.status_text = &FakeRocprofiler::status_text;
  api.version = version;
  return api;
}

class RocmTest : public ::testing::Test {
 protected:
  FakeRocprofiler rocm;
  MemorySink sink;
  TempTree tree;
  cupti::Tracer* tracer = nullptr;
  RocmWork* work = nullptr;
  std::size_t most_waiting = 1000;
  scopes::InScope back;

  bool start() {
    sink = {};
    if (rocm.gpus.empty()) rocm.gpus = {{0, 0xc100}};
    cupti::Tracer::Options options;
    options.period = seconds{100};  // only at a flush
    tracer = new cupti::Tracer(std::make_unique<cupti::SharedSink>(sink), options);
    static auto& all = *new std::vector<cupti::Tracer*>;  // never destroyed, and no leak
    all.push_back(tracer);
    const bool started = tracer->start_work([&](model::ActivitySink& to, std::function<void()> w) {
      RocmOptions with;
      with.root = tree.root();
      with.most_waiting = most_waiting;
      auto made = RocmWork::start(fake_api(rocm.version), with, to, std::move(w));
      if (made) work = static_cast<RocmWork*>(made->get());
      return made;
    });
    rocm.configuring = false;
    return started;
  }
  void flush() { ASSERT_TRUE(tracer->flush(seconds{10})); }
  void TearDown() override {
    if (tracer == nullptr) return;
    EXPECT_TRUE(tracer->end(seconds{10}, false));
  }
  // A kernel of one millisecond that has just ended.
  FakeRocprofiler::Dispatch& launch(const std::string& name, std::size_t gpu = 0) {
    const std::uint64_t end = FakeRocprofiler::stamp();
    return rocm.launch(name, end - kMs, end, gpu);
  }
};

TEST_F(RocmTest, KernelsAndCopiesAreRecordedOnTheBoard) {
  tree.write("sys/bus/pci/devices/0001:c1:00.0/unique_id", "5d1a3b9f00c0ffee\n");
  rocm.gpus = {{1, 0xc100}};
  ASSERT_TRUE(start());
  EXPECT_THAT(rocm.traced, ElementsAre(abi::kBufferMemoryCopy, abi::kBufferKernelDispatch));
  const HostTime before = HostClock::now();
  launch("_Z4gemmPf");
  launch("_Z4gemmPf");
  const std::uint64_t end = FakeRocprofiler::stamp();
  rocm.copy(abi::CopyKind::kHostToDevice, 5000, end - 2 * kMs, end);
  rocm.copy(abi::CopyKind::kHostToHost, 5000, end - 2 * kMs, end);
  flush();
  ASSERT_EQ(sink.trace.devices.size(), 1U);
  EXPECT_EQ(sink.trace.devices[0].uuid, "GPU-5d1a3b9f00c0ffee");
  EXPECT_EQ(sink.trace.devices[0].name, "AMD Instinct MI300X");
  ASSERT_EQ(sink.trace.classes.size(), 2U);
  EXPECT_EQ(sink.trace.classes[0].name, "_Z4gemmPf");
  EXPECT_THAT(sink.trace.classes[0].grid, ElementsAre(4, 4, 1));  // of groups
  EXPECT_THAT(sink.trace.classes[0].block, ElementsAre(256, 1, 1));
  EXPECT_EQ(sink.trace.classes[1].name, "memcpy HtoD");
  EXPECT_EQ(sink.of_class(0).launches, 2U);
  EXPECT_EQ(sink.trace.status.activities, 3U);
  EXPECT_EQ(sink.trace.status.dropped, 0U);
  EXPECT_EQ(sink.trace.status.problem, "");
  // Of the host's clock: they began within a few milliseconds of now.
  const std::int64_t host = before.time_since_epoch().count() / sink.trace.bin.count();
  for (const auto& [key, sum] : sink.bins(0)) EXPECT_LT(std::abs(key.first - host), 100);
}

TEST_F(RocmTest, PartitionsAreTheirBoard) {
  rocm.gpus = {{0, 0xc100}, {0, 0x1000c100}, {0, 0xc200}, {0, 0x7000c100}};
  ASSERT_TRUE(start());
  for (std::size_t gpu = 0; gpu != 4; ++gpu) launch("k", gpu);
  flush();
  ASSERT_EQ(sink.trace.devices.size(), 2U);
  EXPECT_EQ(sink.total(0).launches, 3U);
  EXPECT_EQ(sink.total(1).launches, 1U);
  EXPECT_EQ(sink.trace.devices[0].uuid, "");  // no unique number
}

TEST_F(RocmTest, RangesOfRoctxAreScopes) {
  for (const std::uint32_t version : {600U, 10000U, 10100U}) {
    rocm.version = version;
    rocm.configuring = true;
    rocm.kernels.clear();
    ASSERT_TRUE(start());
    launch("outside");
    rocm.marker(abi::kRangePush, "step");
    rocm.marker(abi::kRangeStart, "prefill", 5);
    launch("k");
    rocm.marker(abi::kRangeStop, nullptr, 5);
    launch("k");
    rocm.marker(abi::kRangePop, nullptr);
    launch("outside");
    flush();
    std::vector<std::string> where;
    for (const auto& [key, sum] : sink.scopes()) {
      const std::uint32_t range =
          key.second == model::kNone ? model::kNone : sink.trace.scopes.at(key.second).range;
      std::string path = range == model::kNone ? "-" : sink.trace.ranges.at(range).name;
      if (range != model::kNone && sink.trace.ranges.at(range).parent != model::kNone) {
        path = sink.trace.ranges.at(sink.trace.ranges.at(range).parent).name + "/" + path;
      }
      where.push_back(sink.trace.classes.at(key.first).name + " " + path + " " +
                      std::to_string(sum.launches));
    }
    EXPECT_THAT(where,
                ::testing::UnorderedElementsAre("outside - 2", "k step/prefill 1", "k step 1"))
        << version;
    EXPECT_TRUE(tracer->end(seconds{10}, false));
    tracer = nullptr;
  }
}

TEST_F(RocmTest, WhatIsLostIsCounted) {
  most_waiting = 4;
  ASSERT_TRUE(start());
  launch("k").size = 100;      // of a layout that is not known
  launch("k").info.size = 40;  // the same
  launch("k").start = 0;       // without times
  launch("k").end = 1;         // before its start
  auto& ahead = launch("k");   // of another clock
  ahead.start += 60'000 * kMs;
  ahead.end += 60'000 * kMs;
  auto& earlier = launch("k");  // the same
  earlier.start -= FakeRocprofiler::kAhead;
  earlier.end -= FakeRocprofiler::kAhead;
  launch("k");     // beyond the bound
  launch("k", 3);  // the same
  rocm.dropped = 10;
  flush();
  EXPECT_EQ(sink.trace.status.activities, 0U);
  EXPECT_EQ(sink.trace.status.dropped, 10U + 8U);
  launch("k");
  launch("k", 3);  // on no known GPU
  rocm.dropped = 12;
  flush();
  EXPECT_EQ(sink.total(0).launches, 1U);
  EXPECT_EQ(sink.trace.status.dropped, 12U + 8U + 1U);
}

TEST_F(RocmTest, WhatItDoesNotOfferIsSaid) {
  for (const auto& [service, words] :
       std::vector<std::pair<std::string, std::string>>{{"context", "no context"},
                                                        {"buffer", "no buffer"},
                                                        {"kernels", "records no kernels"},
                                                        {"names", "names of kernels"},
                                                        {"start", "does not start"}}) {
    rocm.refused = {service};
    rocm.configuring = true;
    EXPECT_FALSE(start());
    flush();
    EXPECT_THAT(sink.trace.status.problem,
                AllOf(HasSubstr("not traced"), HasSubstr(words), HasSubstr("generalized error")));
    EXPECT_TRUE(tracer->end(seconds{10}, false));
  }
  rocm.refused = {"copies", "markers", "correlation", "agents"};
  rocm.configuring = true;
  EXPECT_TRUE(start());
  flush();
  EXPECT_THAT(sink.trace.status.problem,
              AllOf(HasSubstr("copies of memory"), HasSubstr("ROCTX"), HasSubstr("no layers"),
                    HasSubstr("does not list the GPUs")));
}

TEST_F(RocmTest, AfterTheLibrarysEndItIsCalledNoMore) {
  ASSERT_TRUE(start());
  launch("k");
  work->close();
  EXPECT_FALSE(rocm.started);
  rocm.finalized = true;
  launch("late");  // it reaches no tool
  flush();
  EXPECT_EQ(sink.total(0).launches, 1U);
}

TEST_F(RocmTest, OneLibraryTracesAProcess) {
  ASSERT_TRUE(start());
  cupti::FakeCupti cupti;
  tracer->start_cupti([] { return Result<cupti::CuptiApi>(cupti::FakeCupti::api()); }, true);
  EXPECT_TRUE(cupti.enabled.empty());
}

TEST(RocprofilerApi, OtherVersionsAreNotUsed) {
  for (const std::uint32_t version : {0U, 400U, 500U, 20000U}) {
    const auto api = RocprofilerApi::loaded(version);
    ASSERT_FALSE(api);
    EXPECT_EQ(api.error().code, Errc::kUnsupported);
    EXPECT_THAT(api.error().message, HasSubstr("ROCm 6.4"));
  }
  const auto absent = RocprofilerApi::loaded(10000);  // it is not in this process
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("1.0.0 has no rocprofiler_create_context"));
}

TEST(RocprofilerApi, ABoardsNumberIsItsUuid) {
  TempTree tree;
  const std::string address = "0000:c1:00.0";
  const std::string file = "sys/bus/pci/devices/" + address + "/unique_id";
  EXPECT_EQ(board_uuid(tree.root(), address), "");
  tree.write(file, "0123456789abcdef\n");
  EXPECT_EQ(board_uuid(tree.root(), address), "GPU-0123456789abcdef");
  for (const char* none : {"0000000000000000\n", "\n", "N/A\n"}) {
    tree.write(file, none);
    EXPECT_EQ(board_uuid(tree.root(), address), "") << none;
  }
}

}  // namespace
}  // namespace jouleprof::rocm
