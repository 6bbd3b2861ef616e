#include "spans/cupti/graph_mode.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "spans/cupti/fake_cupti.h"

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
  void launch() {
    mode.on_launch(Site::kEnter);
    mode.on_launch(Site::kExit);
  }
};

TEST_F(GraphModeTest, SwitchesAfterALaunch) {
  launch();
  EXPECT_FALSE(whole());
  mode.start();
  EXPECT_TRUE(whole());
  mode.want_nodes(true);
  EXPECT_TRUE(whole());
  mode.on_launch(Site::kEnter);
  EXPECT_TRUE(whole());
  mode.on_launch(Site::kExit);
  EXPECT_FALSE(whole());
  launch();
  EXPECT_FALSE(whole());
  mode.want_nodes(false);
  launch();
  EXPECT_TRUE(whole());
  mode.stop();
  EXPECT_FALSE(whole());
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
  mode.on_launch(Site::kEnter);
  std::thread([&] {
    mode.on_instantiation(Site::kEnter);
    mode.on_instantiation(Site::kExit);
  }).join();
  EXPECT_FALSE(whole());
  mode.on_creation();
  mode.want_nodes(false);
  mode.on_launch(Site::kExit);
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
