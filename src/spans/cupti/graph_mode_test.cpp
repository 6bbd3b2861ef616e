#include "spans/cupti/graph_mode.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "spans/cupti/cupti_fixture.h"

namespace jouleprof::cupti {
namespace {

using abi::cupti::ActivityKind;
using abi::cupti::Site;

class GraphModeTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  CuptiApi api = FakeCupti::api();
  GraphMode mode{api};

  bool whole() const { return cupti.enabled.contains(ActivityKind::kGraphTrace); }
  static abi::cupti::GraphExec graph(std::uintptr_t n) {
    return reinterpret_cast<abi::cupti::GraphExec>(0x1000 * n);
  }
  bool kernels() const { return cupti.enabled.contains(ActivityKind::kConcurrentKernel); }
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

}  // namespace
}  // namespace jouleprof::cupti
