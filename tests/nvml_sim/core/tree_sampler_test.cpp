#include "nvml_sim/core/tree_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "nvml_sim/core/limited_power.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::nvml_sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const TreeSpec kNoThread{{}, 1, 0};

std::string stat(int pid, int parent, char state = 'S') {
  return std::to_string(pid) + " (a) b) " + state + " " + std::to_string(parent) + " 1 1 0";
}

TEST(ProcessTree, FindsDescendantsByPidOrEnvironment) {
  const TempTree proc({{"1/stat", stat(1, 0)},
                       {"1/environ", ""},
                       {"20/stat", stat(20, 1)},
                       {"20/environ", std::string("A=1\0LOAD=yes\0", 13)},
                       {"21/stat", stat(21, 20)},
                       {"21/environ", std::string("A=1\0", 4)},
                       {"22/stat", stat(22, 21)},
                       {"22/environ", ""},
                       {"23/stat", stat(23, 20, 'Z')},
                       {"30/stat", stat(30, 1)},
                       {"30/environ", std::string("LOADED=yes\0", 11)},
                       {"self/stat", stat(1, 0)}});
  EXPECT_THAT(tree_members({20, ""}, proc.root()), ElementsAre(20, 21, 22));
  EXPECT_THAT(tree_members({0, "LOAD=yes"}, proc.root()), ElementsAre(20, 21, 22));
  EXPECT_THAT(tree_members({0, "LOAD"}, proc.root()), ElementsAre(20, 21, 22));
  EXPECT_THAT(tree_members({0, "LOAD=no"}, proc.root()), IsEmpty());
  EXPECT_THAT(tree_members({99, ""}, proc.root()), IsEmpty());
}

TEST(ProcessTree, ContainsThisProcess) {
  EXPECT_THAT(tree_members({}), testing::Contains(getpid()));
}

TEST(TreeSampler, PowerFollowsTheRecordedUse) {
  const auto sampler = std::make_shared<TreeSampler>(kNoThread, 0);
  sampler->record(1, 0.5, {{10, 0.5}});
  sampler->record(2, 1, {{10, 1}});
  sampler->record(3, 0, {});
  const auto curve = follow(sampler, 100, 500);
  EXPECT_DOUBLE_EQ(curve.watts(0.5), 100);
  EXPECT_DOUBLE_EQ(curve.watts(1), 300);
  EXPECT_DOUBLE_EQ(curve.watts(2.5), 500);
  EXPECT_DOUBLE_EQ(curve.watts(9), 100);
  EXPECT_NEAR(curve.joules(0, 4), 100 + 300 + 500 + 100, 1e-9);
  const LimitedPower capped(curve, 400);
  EXPECT_NEAR(capped.joules(0, 4), 100 + 300 + 400 + 100, 1e-9);
}

TEST(TreeSampler, AReturnedUseNeverChanges) {
  TreeSampler sampler(kNoThread, 0);
  sampler.record(1, 1, {});
  const double before = sampler.use_seconds(0, 5);
  sampler.record(3, 0, {});  // recorded late: counts from 5 on
  EXPECT_DOUBLE_EQ(sampler.use_seconds(0, 5), before);
  EXPECT_DOUBLE_EQ(sampler.use_seconds(0, 9), before);
}

TEST(TreeSampler, MeasuresThisProcess) {
  TreeSampler sampler({{getpid(), ""}, 1, 0}, RealClock::now().time_since_epoch().count());
  sampler.sample();
  volatile double x = 1;
  for (int i = 0; i < 20'000'000; ++i) x = x * 1.0000001;
  sampler.sample();
  const auto members = sampler.members();
  ASSERT_FALSE(members.empty());
  EXPECT_EQ(members.front().pid, getpid());
  EXPECT_GT(members.front().use, 0);
  EXPECT_LE(members.front().use, 1);
}

TEST(TreeSampler, StopsItsThread) {
  TreeSampler sampler({{}, 1, 0.001}, RealClock::now().time_since_epoch().count());
  EXPECT_FALSE(sampler.members().empty());
}

}  // namespace
}  // namespace jouleprof::nvml_sim
