// The whole tracer over a fabricated CUPTI.
#include "spans/cupti/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spans/cupti/fake_cupti.h"
#include "spans/cupti/loaded_libraries.h"
#include "spans/cupti/memory_sink.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using abi::ActivityKind;
using Sum = MemorySink::Sum;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// What the tracer tells, readable while it goes on.
struct SharedSink : model::ActivitySink {
  explicit SharedSink(MemorySink& into) : all(into) {}
  MemorySink& all;
  void define(std::uint32_t id, const model::TracedDevice& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::KernelClass& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Layer& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Range& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Scope& v) override { all.define(id, v); }
  void add(const model::ActivityChunk& v) override { all.add(v); }
  void status(const model::TraceStatus& v) override { all.status(v); }
};

std::uint64_t real_now() {
  return static_cast<std::uint64_t>(RealClock::now().time_since_epoch().count());
}

class TracerTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  MemorySink sink;
  Tracer* tracer = nullptr;  // never destroyed, as in a program
  std::uint64_t begin = real_now() - 1'000'000'000;

  void start(Tracer::Options options = {}) {
    options.period = seconds{100};  // only when asked
    make(options);
    tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  }
  void make(Tracer::Options options) {
    tracer = new Tracer(std::make_unique<SharedSink>(sink), options);
    // Never destroyed, and no leak.
    static auto& all = *new std::vector<Tracer*>;
    all.push_back(tracer);
  }
  void TearDown() override {
    if (tracer == nullptr) return;
    EXPECT_TRUE(tracer->end(seconds{10}, false));
  }

  abi::ActivityKernel kernel(const char* name, std::uint64_t start, std::uint64_t end,
                             std::uint32_t correlation) const {
    abi::ActivityKernel k{};
    k.kind = ActivityKind::kConcurrentKernel;
    k.start = begin + start;
    k.end = begin + end;
    k.name = name;
    k.grid[0] = 4;
    k.grid[1] = k.grid[2] = 1;
    k.block[0] = 128;
    k.block[1] = k.block[2] = 1;
    k.stream_id = 7;
    k.correlation_id = correlation;
    return k;
  }
  template <typename Record>
  void add(const Record& record) {
    cupti.record(record, FakeCupti::size_of(record.kind));
  }
};

TEST_F(TracerTest, TurnsOnWhatItNeedsAndNothingElse) {
  start();
  using enum ActivityKind;
  EXPECT_THAT(cupti.enabled, ::testing::UnorderedElementsAre(kConcurrentKernel, kMemcpy, kMemcpy2,
                                                             kMemset, kDevice, kGraphTrace));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kDriverApi, 307}));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kResource, 20}));
  for (const auto& [domain, call] : cupti.calls) EXPECT_NE(domain, abi::Domain::kRuntimeApi);
}

TEST_F(TracerTest, RecordsBecomeClassesAndBins) {
  start();
  abi::ActivityDevice device{};
  device.kind = ActivityKind::kDevice;
  for (unsigned char i = 0; i != 16; ++i) device.uuid[i] = static_cast<unsigned char>(i * 16 + i);
  device.name = "NVIDIA H200";
  add(device);
  add(kernel("gemm", 0, 1000, 1));
  add(kernel("gemm", 2000, 2500, 2));
  abi::ActivityMemcpy copy{};
  copy.kind = ActivityKind::kMemcpy;
  copy.copy_kind = 1;
  copy.bytes = 5000;
  copy.start = begin + 3000;
  copy.end = begin + 3100;
  copy.correlation_id = 3;
  add(copy);
  abi::ActivityMemset set{};
  set.kind = ActivityKind::kMemset;
  set.start = begin + 4000;
  set.end = begin + 4010;
  set.correlation_id = 4;
  add(set);
  abi::ActivityMemcpyPeer peer{};
  peer.kind = ActivityKind::kMemcpy2;
  peer.bytes = 1 << 20;
  peer.start = begin + 5000;
  peer.end = begin + 5100;
  peer.correlation_id = 5;
  add(peer);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  const auto& trace = sink.trace;
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0],
            (model::TracedDevice{0, "GPU-00112233-4455-6677-8899-aabbccddeeff", "NVIDIA H200"}));
  ASSERT_EQ(trace.classes.size(), 4U);
  EXPECT_EQ(trace.classes[0],
            (model::KernelClass{model::ActivityKind::kKernel, "gemm", {4, 1, 1}, {128, 1, 1}, 0}));
  EXPECT_EQ(trace.classes[1],
            (model::KernelClass{model::ActivityKind::kMemcpy, "memcpy HtoD", {}, {}, 4096}));
  EXPECT_EQ(trace.classes[2],
            (model::KernelClass{model::ActivityKind::kMemset, "memset", {}, {}, 0}));
  EXPECT_EQ(trace.classes[3],
            (model::KernelClass{model::ActivityKind::kMemcpy, "memcpy PtoP", {}, {}, 1 << 20}));
  EXPECT_EQ(sink.of_class(0), (Sum{1500, 2}));
  EXPECT_EQ(sink.of_class(1), (Sum{100, 1}));
  EXPECT_EQ(trace.status.activities, 5U);
  EXPECT_EQ(trace.status.dropped, 0U);
  EXPECT_EQ(trace.status.problem, "");
  EXPECT_FALSE(trace.status.ended);
}

TEST_F(TracerTest, StampsAreHostTime) {
  start({.events = true});
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  const auto host = HostClock::now().time_since_epoch().count();
  const auto ago = host - static_cast<std::int64_t>(real_now() - begin);
  ASSERT_EQ(sink.events().size(), 1U);
  EXPECT_NEAR(static_cast<double>(sink.events()[0].first), static_cast<double>(ago), 2e6);
}

TEST_F(TracerTest, LaunchesFindTheirScope) {
  start();
  const auto range = scopes::add(model::Range{"step", model::kNone});
  scopes::this_thread().range = range;
  cupti.launch(abi::DriverCall::kLaunchKernel, 11);
  scopes::this_thread().range = model::kNone;
  cupti.launch(abi::DriverCall::kLaunchKernelEx, 12);
  add(kernel("k", 0, 10, 11));
  add(kernel("k", 20, 30, 12));
  add(kernel("k", 40, 50, 13));  // launched before anybody listened
  ASSERT_TRUE(tracer->flush(seconds{10}));
  const auto scopes = sink.scopes();
  ASSERT_EQ(scopes.size(), 2U);  // none comes last
  EXPECT_EQ(scopes.begin()->second, (Sum{10, 1}));
  EXPECT_EQ(scopes.rbegin()->second, (Sum{20, 2}));
  EXPECT_EQ(sink.trace.scopes.at(scopes.begin()->first.second).range, range);
  EXPECT_EQ(sink.of_class(0).launches, 3U);
}

TEST_F(TracerTest, NodesKeepTheScopeOfTheirCapture) {
  start();
  const auto layer = scopes::add(model::Layer{});
  scopes::this_thread().layer = layer;
  cupti.graph_node(abi::ResourceCall::kGraphNodeCreated, 100);
  scopes::this_thread().layer = model::kNone;
  cupti.graph_node(abi::ResourceCall::kGraphNodeCloned, 200, 100);
  cupti.graph_node(abi::ResourceCall::kGraphNodeDestroyStarting, 200);
  cupti.graph_node(abi::ResourceCall::kGraphNodeCreated, 300);
  cupti.launch(abi::DriverCall::kGraphLaunch, 21);
  auto k = kernel("k", 0, 100, 21);
  k.graph_id = 5;
  k.graph_node_id = 200;
  add(k);
  k = kernel("k", 100, 200, 21);
  k.graph_id = 5;
  k.graph_node_id = 300;
  add(k);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  // From now on one record a launch: the nodes are as they were.
  abi::ActivityGraphTrace graph{};
  graph.kind = ActivityKind::kGraphTrace;
  graph.start = begin + 1000;
  graph.end = begin + 1400;
  graph.graph_id = 5;
  graph.correlation_id = 22;
  add(graph);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  const auto scopes = sink.scopes();
  ASSERT_EQ(scopes.size(), 2U);
  EXPECT_EQ(sink.trace.scopes.at(scopes.begin()->first.second).layer, layer);
  EXPECT_EQ(scopes.begin()->second, (Sum{100 + 200, 2}));
  EXPECT_EQ(sink.of_class(0), (Sum{200 + 400, 4}));
  EXPECT_EQ(sink.trace.status.graph_launches, 1U);
  EXPECT_EQ(sink.trace.status.graph_expanded, 1U);
}

TEST_F(TracerTest, GraphsAreRecordedWholeButNowAndThen) {
  start();
  // From the start: later, CUPTI would crash.
  EXPECT_TRUE(cupti.enabled.contains(ActivityKind::kGraphTrace));
  cupti.launch(abi::DriverCall::kGraphLaunch, 1);
  tracer->flush(seconds{10});
  const auto launch_until = [&](bool whole) {
    for (int i = 0; i != 2000; ++i) {
      std::this_thread::sleep_for(milliseconds{1});
      // Switched by the thread that launches, after a launch.
      const bool before = cupti.enabled.contains(ActivityKind::kGraphTrace);
      std::this_thread::sleep_for(milliseconds{1});
      if (before != cupti.enabled.contains(ActivityKind::kGraphTrace)) return false;
      cupti.launch(abi::DriverCall::kGraphLaunch, 1);
      if (cupti.enabled.contains(ActivityKind::kGraphTrace) == whole) return true;
    }
    return false;
  };
  EXPECT_TRUE(launch_until(false));
  EXPECT_TRUE(launch_until(true));
}

TEST_F(TracerTest, GraphsThatMayBeOlderAreRecordedByNode) {
  make({});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, false);
  cupti.launch(abi::DriverCall::kGraphLaunch, 1);
  tracer->flush(seconds{10});
  std::this_thread::sleep_for(milliseconds{100});
  EXPECT_FALSE(cupti.enabled.contains(ActivityKind::kGraphTrace));
}

TEST_F(TracerTest, RecordsWithoutTimesAreDropped) {
  start();
  auto k = kernel("k", 0, 10, 1);
  k.start = k.end = 0;
  add(k);
  k = kernel("k", 0, 10, 1);
  std::swap(k.start, k.end);
  add(k);
  add(kernel("k", 3600'000'000'000, 3600'000'000'010, 1));  // an hour from now
  add(kernel("k", 0, 10, 1));
  cupti.dropped = 5;
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 1U);
  EXPECT_EQ(sink.trace.status.dropped, 8U);
}

TEST_F(TracerTest, WithoutBuffersRecordsAreCountedAsDropped) {
  start({.most_buffers = 0});
  add(kernel("k", 0, 10, 1));
  add(kernel("k", 20, 30, 2));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 0U);
  EXPECT_EQ(sink.trace.status.dropped, 2U);
}

TEST_F(TracerTest, BuffersAreUsedAgain) {
  start({.most_buffers = 2});
  for (std::uint32_t i = 0; i != 50; ++i) {
    add(kernel("k", i * 100, i * 100 + 10, i));
    ASSERT_TRUE(tracer->flush(seconds{10}));
  }
  EXPECT_EQ(sink.trace.status.dropped, 0U);
  EXPECT_EQ(sink.of_class(0), (Sum{500, 50}));
}

TEST_F(TracerTest, AnotherSubscriberLeavesTheRecords) {
  cupti.subscribe_result = abi::Result::kMultipleSubscribersNotSupported;
  start();
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("jouleprof annotate"));
}

TEST_F(TracerTest, ARefusalIsTheStatus) {
  cupti.enable_result = abi::Result::kInsufficientPrivileges;
  start();
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
}

TEST_F(TracerTest, NoCuptiIsTheStatus) {
  make({.period = seconds{100}});
  tracer->start_cupti([] { return load_cupti({"/nowhere/libcupti.so.13"}); }, true);
  ASSERT_TRUE(tracer->end(seconds{10}, false));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("nvidia-cuda-cupti"));
  EXPECT_TRUE(sink.trace.status.ended);
  EXPECT_EQ(sink.statuses, 1);
}

TEST_F(TracerTest, BuffersTakenAwayAreNoticed) {
  Tracer::Options options;
  options.taken_away_after = milliseconds{0};
  start(options);
  add(kernel("k", 0, 10, 1));
  cupti.launch(abi::DriverCall::kLaunchKernel, 1);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.problem, "");
  cupti.taken_away = true;
  cupti.launch(abi::DriverCall::kLaunchKernel, 2);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("no longer hands over"));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("jouleprof annotate"));
}

TEST_F(TracerTest, LaunchesNobodyToldOfTurnOnTheRuntimesCallbacks) {
  start();
  for (std::uint32_t i = 0; i != 1200; ++i) add(kernel("k", i * 100, i * 100 + 10, i + 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kRuntimeApi, 211}));
}

TEST_F(TracerTest, EndTellsAllAndTurnsOff) {
  start();
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->end(seconds{10}, false));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
  EXPECT_TRUE(sink.trace.status.ended);
  EXPECT_EQ(cupti.forced_flushes, 1);
  EXPECT_TRUE(cupti.enabled.empty());
  // What comes now goes nowhere.
  cupti.launch(abi::DriverCall::kLaunchKernel, 2);
  add(kernel("k", 20, 30, 2));
  cupti.deliver();
  EXPECT_EQ(cupti.dropped, 1U);
}

TEST_F(TracerTest, AForkedChildIsSilent) {
  start();
  add(kernel("k", 0, 10, 1));
  const pid_t child = fork();
  if (child == 0) {
    Tracer::forget_all();
    cupti.launch(abi::DriverCall::kLaunchKernel, 2);
    cupti.deliver();
    _exit(cupti.dropped == 1 && sink.trace.chunks.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
}

TEST_F(TracerTest, ManyThreadsLaunchWhileBuffersAreRead) {
  make({.period = milliseconds{1}});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t != 4; ++t) {
    threads.emplace_back([this, t] {
      const auto range = scopes::add(model::Range{"thread " + std::to_string(t), model::kNone});
      scopes::this_thread().range = range;
      for (std::uint32_t i = 0; i != 2000; ++i) {
        const std::uint32_t n = i * 4 + t;
        cupti.launch(abi::DriverCall::kLaunchKernel, n + 1);
        add(kernel("k", n * 1000, n * 1000 + 900, n + 1));
        if (i % 50 == 0) cupti.deliver();
        if (i % 500 == 0) tracer->flush(seconds{10});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(tracer->end(seconds{10}, false));
  // Threads that outrun the tracer find no buffer: what they lose is counted.
  const auto& status = sink.trace.status;
  EXPECT_EQ(status.activities + status.dropped, 8000U);
  EXPECT_EQ(sink.of_class(0).launches, status.activities);
  EXPECT_GE(status.activities, 1000U);
  std::uint64_t in_scopes = 0;
  for (const auto& [key, sum] : sink.scopes()) in_scopes += sum.launches;
  EXPECT_EQ(in_scopes, status.activities);
}

TEST_F(TracerTest, SourcesAreAskedAfterScopes) {
  make({.period = seconds{100}});
  tracer->add_source([](model::ActivitySink& to) {
    to.add({model::ChunkKind::kLayers, model::kNone, {}, {}, "x"});
  });
  ASSERT_TRUE(tracer->flush(seconds{10}));
  ASSERT_EQ(sink.trace.chunks.size(), 1U);
  EXPECT_EQ(sink.trace.chunks[0].kind, model::ChunkKind::kLayers);
}

TEST_F(TracerTest, TellsOfItselfOnceASecond) {
  make({.period = milliseconds{10}});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  std::this_thread::sleep_for(milliseconds{300});
  ASSERT_TRUE(tracer->end(seconds{10}, true));
  EXPECT_GE(sink.statuses, 2);
}

}  // namespace
}  // namespace jouleprof::cupti
