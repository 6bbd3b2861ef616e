#include "spans/cupti/record_modes.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "spans/cupti/cupti_fixture.h"

namespace jouleprof::cupti {
namespace {

using abi::cupti::ActivityKind;
using abi::cupti::DriverCall;
using abi::cupti::MemsetParameters;
using abi::cupti::MemsetRowsParameters;
using abi::cupti::Site;
using std::chrono::milliseconds;
using std::chrono::seconds;

class GraphModeTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  CuptiApi api = FakeCupti::api();
  GraphMode mode{api};

  bool whole() { return cupti.records(ActivityKind::kGraphTrace); }
  static abi::cupti::GraphExec graph(std::uintptr_t n) {
    return reinterpret_cast<abi::cupti::GraphExec>(0x1000 * n);
  }
  bool kernels() { return cupti.records(ActivityKind::kConcurrentKernel); }
  // Whether it was recorded.
  bool launch(std::uintptr_t n = 1) {
    const bool recorded = !mode.on_launch(Site::kEnter, graph(n));
    EXPECT_EQ(recorded, kernels() == was_enabled_);
    mode.on_launch(Site::kExit, graph(n));
    EXPECT_EQ(kernels(), was_enabled_);
    return recorded;
  }
  void can_settle() {
    api.graph_exec_id = [](abi::cupti::GraphExec, std::uint32_t*) {
      return abi::cupti::Result::kSuccess;
    };
    cupti.enabled.insert(ActivityKind::kConcurrentKernel);
    was_enabled_ = true;
  }

 private:
  bool was_enabled_ = false;
};

TEST_F(GraphModeTest, AGraphThatIsChangedIsNeverLaunchedAsAWholeAgain) {
  mode.start();
  launch();
  EXPECT_TRUE(whole());
  mode.on_update();
  EXPECT_FALSE(whole());
  mode.want_nodes(false);
  launch();
  launch();
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, SwitchesAfterALaunch) {
  launch();
  EXPECT_FALSE(whole());
  mode.start();
  EXPECT_TRUE(whole());
  mode.want_nodes(true);
  EXPECT_TRUE(whole());
  mode.on_launch(Site::kEnter, graph(1));
  EXPECT_TRUE(whole());
  mode.on_launch(Site::kExit, graph(1));
  EXPECT_FALSE(whole());
  launch();
  EXPECT_FALSE(whole());
  mode.want_nodes(false);
  launch();
  EXPECT_TRUE(whole());
  mode.stop();
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, TheNextLaunchOfASlowGraphIsNotRecorded) {
  can_settle();
  mode.start();
  mode.want_nodes(true);
  EXPECT_TRUE(launch(1));
  EXPECT_TRUE(launch(1));  // node by node
  EXPECT_TRUE(launch(2));
  mode.want_nodes(false);
  EXPECT_TRUE(launch(3));
  ASSERT_TRUE(whole());
  EXPECT_FALSE(launch(1));
  EXPECT_TRUE(whole());
  EXPECT_TRUE(launch(1));
  EXPECT_FALSE(launch(2));
  EXPECT_TRUE(launch(2));
  EXPECT_FALSE(launch(3));
  EXPECT_TRUE(launch(4));
}

TEST_F(GraphModeTest, WhileAnotherThreadLaunchesAllIsRecorded) {
  can_settle();
  mode.start();
  mode.want_nodes(true);
  launch(1);
  launch(1);
  mode.want_nodes(false);
  launch(2);
  ASSERT_TRUE(whole());
  std::thread([&] { mode.on_launch(Site::kEnter, graph(3)); }).join();
  EXPECT_TRUE(launch(1));
}

TEST_F(GraphModeTest, AGraphThatEndedIsForgotten) {
  can_settle();
  mode.start();
  mode.want_nodes(true);
  launch(1);
  launch(1);
  mode.want_nodes(false);
  launch(2);
  mode.on_destruction(graph(1));
  EXPECT_TRUE(launch(1));  // another at the same address
}

TEST_F(GraphModeTest, WhereAGraphsNumberIsUnknownAllIsRecorded) {
  mode.start();
  mode.want_nodes(true);
  launch(1);
  launch(1);
  mode.want_nodes(false);
  launch(2);
  EXPECT_TRUE(launch(1));
}

TEST_F(GraphModeTest, LaunchesAreWholeWhileAGraphIsMade) {
  mode.start();
  mode.want_nodes(true);
  launch();
  ASSERT_FALSE(whole());
  mode.on_instantiation(Site::kEnter);
  EXPECT_TRUE(whole());
  mode.on_creation();
  std::thread([&] { launch(); }).join();  // must not switch yet
  EXPECT_TRUE(whole());
  mode.on_instantiation(Site::kExit);
  EXPECT_TRUE(whole());
  launch();
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, AGraphMadeInAnUnknownWayIsNeverLaunchedWhole) {
  mode.start();
  mode.on_creation();  // whole: no harm
  mode.want_nodes(true);
  launch();
  ASSERT_FALSE(whole());
  mode.on_creation();
  mode.want_nodes(false);
  launch();
  mode.on_instantiation(Site::kEnter);
  mode.on_instantiation(Site::kExit);
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, WhereEveryNodeIsWantedNothingIsHeld) {
  mode.start();
  mode.want_nodes(false, true);
  launch();
  ASSERT_FALSE(whole());
  mode.on_instantiation(Site::kEnter);
  mode.on_creation();
  mode.on_instantiation(Site::kExit);
  EXPECT_FALSE(whole());
  mode.want_nodes(false);
  launch();
  EXPECT_TRUE(whole());
}

TEST_F(GraphModeTest, AGraphThatIsMadeDuringALongLaunchIsNeverLaunchedWhole) {
  mode.start();
  mode.want_nodes(true);
  launch();
  ASSERT_FALSE(whole());
  mode.on_launch(Site::kEnter, graph(1));
  std::thread([&] {
    mode.on_instantiation(Site::kEnter);
    mode.on_instantiation(Site::kExit);
  }).join();
  EXPECT_FALSE(whole());
  mode.on_creation();
  mode.want_nodes(false);
  mode.on_launch(Site::kExit, graph(1));
  launch();
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, WithoutSuchRecordsNodesStay) {
  cupti.enable_result = abi::cupti::Result::kInvalidKind;
  mode.start();
  mode.on_instantiation(Site::kEnter);
  mode.on_instantiation(Site::kExit);
  cupti.enable_result = abi::cupti::Result::kSuccess;
  launch();
  EXPECT_FALSE(whole());
}

TEST_F(GraphModeTest, NoGraphIsMadeWithoutSuchRecordsWhateverOthersDo) {
  mode.start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 2000; ++i) {
        if (t == 0) mode.want_nodes(i % 2 == 0);
        launch();
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 500; ++i) {
        mode.on_instantiation(Site::kEnter);
        EXPECT_TRUE(whole());
        mode.on_instantiation(Site::kExit);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

constexpr std::uint64_t kSmall = MemsetRecords::kLeastBytes - 1;
constexpr std::uint64_t kLarge = MemsetRecords::kLeastBytes;

class MemsetRecordsTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  CuptiApi api = FakeCupti::api();
  MemsetRecords memsets{api};

  void SetUp() override { cupti.enabled.insert(ActivityKind::kMemset); }
  bool enabled() { return cupti.records(ActivityKind::kMemset); }
  // Whether it is recorded.
  bool set(std::uint64_t bytes) {
    memsets.on_call(Site::kEnter, bytes);
    const bool recorded = enabled();
    memsets.on_call(Site::kExit, bytes);
    return recorded;
  }
};

TEST_F(MemsetRecordsTest, AtFirstAllAreRecorded) {
  EXPECT_TRUE(set(4));
  EXPECT_EQ(memsets.left_out(), 0U);
}

TEST_F(MemsetRecordsTest, OnlyLargeOnesAreRecorded) {
  memsets.leave_out_small();
  EXPECT_FALSE(set(kSmall));
  EXPECT_TRUE(set(kLarge));
  EXPECT_FALSE(enabled());
  EXPECT_FALSE(set(4));
  EXPECT_EQ(memsets.left_out(), 2U);
}

TEST_F(MemsetRecordsTest, ALargeOneIsRecordedWhateverOtherThreadsDo) {
  memsets.leave_out_small();
  memsets.on_call(Site::kEnter, kLarge);
  std::thread([&] {
    set(kLarge);
    set(kSmall);
  }).join();
  EXPECT_TRUE(enabled());
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_FALSE(enabled());
}

TEST_F(MemsetRecordsTest, ACallThatBeganUnseenChangesNothing) {
  memsets.leave_out_small();
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_FALSE(enabled());
  EXPECT_TRUE(set(kLarge));
  EXPECT_FALSE(enabled());
}

TEST_F(MemsetRecordsTest, AllFromAGraphOn) {
  memsets.leave_out_small();
  memsets.on_call(Site::kEnter, kLarge);
  memsets.record_all();
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_TRUE(set(4));
  EXPECT_EQ(memsets.left_out(), 0U);
}

TEST_F(MemsetRecordsTest, AllWhereTheyTakeMuchOfTheTime) {
  const HostTime begin = HostTime{} + seconds{100};
  for (const bool many : {false, true}) {
    cupti.enabled.insert(ActivityKind::kMemset);
    MemsetRecords some(api);
    some.leave_out_small();
    some.adapt(begin);
    for (std::uint64_t i = 0; i != 2 * MemsetRecords::kMostLeftOut + (many ? 1 : 0); ++i) {
      some.on_call(Site::kEnter, 4);
    }
    some.adapt(begin + milliseconds{100});  // too soon to say
    EXPECT_FALSE(enabled());
    some.adapt(begin + seconds{2});
    EXPECT_EQ(enabled(), many);
  }
}

TEST_F(MemsetRecordsTest, WhereNoneAreRecordedNothingIsEnabled) {
  api.disable = [](ActivityKind) { return abi::cupti::Result::kInvalidParameter; };
  cupti.enabled.clear();
  memsets.leave_out_small();
  EXPECT_FALSE(set(kLarge));
  memsets.record_all();
  EXPECT_FALSE(enabled());
}

TEST(MemsetBytes, OfEachCall) {
  MemsetParameters flat{};
  flat.count = 1000;
  MemsetRowsParameters rows{};
  rows.pitch = 4096;
  rows.width = 100;
  rows.height = 7;
  using enum DriverCall;
  constexpr std::array kFlat{
      std::array{kMemsetD8, kMemsetD8Ptds, kMemsetD8Async, kMemsetD8AsyncPtsz},
      std::array{kMemsetD16, kMemsetD16Ptds, kMemsetD16Async, kMemsetD16AsyncPtsz},
      std::array{kMemsetD32, kMemsetD32Ptds, kMemsetD32Async, kMemsetD32AsyncPtsz}};
  constexpr std::array kRows{
      std::array{kMemsetD2D8, kMemsetD2D8Ptds, kMemsetD2D8Async, kMemsetD2D8AsyncPtsz},
      std::array{kMemsetD2D16, kMemsetD2D16Ptds, kMemsetD2D16Async, kMemsetD2D16AsyncPtsz},
      std::array{kMemsetD2D32, kMemsetD2D32Ptds, kMemsetD2D32Async, kMemsetD2D32AsyncPtsz}};
  for (std::size_t i = 0; i != 3; ++i) {
    const std::uint64_t element = std::uint64_t{1} << i;
    for (const auto call : kFlat[i]) EXPECT_EQ(memset_bytes(call, &flat), 1000 * element);
    for (const auto call : kRows[i]) EXPECT_EQ(memset_bytes(call, &rows), 700 * element);
  }
  EXPECT_EQ(memset_bytes(kMemsetD8Async, nullptr), UINT64_MAX);
  EXPECT_EQ(memset_bytes(kLaunchKernel, &flat), std::nullopt);
}

}  // namespace
}  // namespace jouleprof::cupti
