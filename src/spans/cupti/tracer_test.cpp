// The whole tracer over a fabricated CUPTI.
#include "spans/cupti/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "spans/cupti/cupti_api.h"
#include "spans/cupti/tracer_fixture.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using abi::ActivityKind;
using Sum = MemorySink::Sum;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST_F(TracerTest, TurnsOnWhatItNeedsAndNothingElse) {
  start();
  using enum ActivityKind;
  EXPECT_THAT(cupti.enabled, ::testing::UnorderedElementsAre(kConcurrentKernel, kMemcpy, kMemcpy2,
                                                             kDevice, kGraphTrace));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kDriverApi, 307}));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kResource, 20}));
  for (const auto& [domain, call] : cupti.calls) EXPECT_NE(domain, abi::Domain::kRuntimeApi);
  EXPECT_FALSE(cupti.calls.contains(
      {abi::Domain::kDriverApi, static_cast<std::uint32_t>(abi::DriverCall::kMemFree2)}));
}

TEST_F(TracerTest, AListenerIsGivenCallsThatAreNoWorkToo) {
  static std::vector<abi::DriverCall> heard;
  static std::size_t unloaded = 0;
  const Collector::Listener listener{
      [](abi::DriverCall call, const abi::CallbackData&) { heard.push_back(call); },
      [](const abi::ModuleData& code) { unloaded = code.bytes; }};
  Collector::listen(&listener);
  start();
  cupti.call(abi::DriverCall::kMemFree2, abi::Site::kEnter, 1);
  cupti.call(abi::DriverCall::kLaunchKernel, abi::Site::kEnter, 2);
  cupti.unload({1, 4096, nullptr});
  Collector::listen(nullptr);
  EXPECT_EQ(unloaded, 4096u);
  EXPECT_TRUE(cupti.calls.contains(
      {abi::Domain::kDriverApi, static_cast<std::uint32_t>(abi::DriverCall::kMemFree2)}));
  EXPECT_THAT(heard,
              ::testing::ElementsAre(abi::DriverCall::kMemFree2, abi::DriverCall::kLaunchKernel));
}

TEST_F(TracerTest, SmallMemsetsAreLeftOutUntilThereIsAGraph) {
  start();
  const auto recorded = [&](std::uint64_t bytes) {
    const abi::MemsetParameters parameters{.address = 0, .value = {}, .count = bytes};
    cupti.call(abi::DriverCall::kMemsetD8Async, abi::Site::kEnter, 1, &parameters);
    const bool enabled = cupti.enabled.contains(ActivityKind::kMemset);
    cupti.call(abi::DriverCall::kMemsetD8Async, abi::Site::kExit, 1, &parameters);
    return enabled;
  };
  EXPECT_FALSE(recorded(4));
  EXPECT_TRUE(recorded(std::uint64_t{1} << 20));
  EXPECT_FALSE(recorded(4));
  cupti.graph_node(abi::ResourceCall::kGraphNodeCreated, 1);
  EXPECT_TRUE(recorded(4));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.memsets_left_out, 2U);
}

TEST_F(TracerTest, EventsAreOfEveryMemset) {
  start({.events = true});
  EXPECT_TRUE(cupti.enabled.contains(ActivityKind::kMemset));
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
  tracer->begin_reruns();  // whose graphs are none of the program
  graph.correlation_id = 23;
  add(graph);
  ASSERT_TRUE(tracer->flush(seconds{10}));
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

// The launches of such a graph run its nodes as often as kernels decide: none is like another.
TEST_F(TracerTest, ConditionalGraphsAreRecordedByNode) {
  start();
  EXPECT_TRUE(cupti.enabled.contains(ActivityKind::kGraphTrace));
  cupti.launch(abi::DriverCall::kGraphConditionalHandleCreate, 1);
  EXPECT_FALSE(cupti.enabled.contains(ActivityKind::kGraphTrace));
}

TEST_F(TracerTest, GraphsThatMayBeOlderAreRecordedByNode) {
  make({});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, false);
  cupti.launch(abi::DriverCall::kGraphLaunch, 1);
  tracer->flush(seconds{10});
  std::this_thread::sleep_for(milliseconds{100});
  EXPECT_FALSE(cupti.enabled.contains(ActivityKind::kGraphTrace));
}

TEST_F(TracerTest, UnreportedLaunchesTurnOnTheRuntimesCallbacks) {
  start();
  for (std::uint32_t i = 0; i != 1200; ++i) add(kernel("k", i * 100, i * 100 + 10, i + 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_TRUE(cupti.calls.contains({abi::Domain::kRuntimeApi, 211}));
}

TEST_F(TracerTest, EndSendsAllAndTurnsOff) {
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

TEST_F(TracerTest, SourcesAreAskedAfterScopes) {
  make({.period = seconds{100}});
  tracer->add_source([](model::ActivitySink& to) {
    to.add({model::ChunkKind::kLayers, model::kNone, {}, {}, "x"});
  });
  ASSERT_TRUE(tracer->flush(seconds{10}));
  ASSERT_EQ(sink.trace.chunks.size(), 1U);
  EXPECT_EQ(sink.trace.chunks[0].kind, model::ChunkKind::kLayers);
}

TEST_F(TracerTest, SendsItsStatusOnceASecond) {
  make({.period = milliseconds{10}});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  std::this_thread::sleep_for(milliseconds{300});
  ASSERT_TRUE(tracer->end(seconds{10}, true));
  EXPECT_GE(sink.statuses, 2);
}

}  // namespace
}  // namespace jouleprof::cupti
