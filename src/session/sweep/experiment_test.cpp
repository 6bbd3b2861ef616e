#include "session/sweep/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using meters::control::KnobRange;
using meters::control::ReadBack;
using ::testing::HasSubstr;

// Boards that do what a test says.
struct FakeBoards : meters::control::SettingControl {
  KnobRange allowed{100, 700, {}};
  double limit = 650;
  double enforced_at_most = 1000;
  double celsius = 40;
  std::optional<Error> refusal;
  std::optional<Error> death;
  int restores = 0;

  const KnobRange& range() const override { return allowed; }
  std::optional<double> found() const override { return 650; }
  Result<std::vector<ReadBack>> apply(double value) override {
    if (refusal) return tl::unexpected(*refusal);
    limit = value;
    return read_back();
  }
  std::vector<ReadBack> read_back() const override {
    return {{"gpu0", limit, std::min(limit, enforced_at_most), celsius}};
  }
  Result<void> restore() override {
    limit = 650;
    ++restores;
    return {};
  }
  std::optional<Error> lost() const override { return death; }
};

class ExperimentTest : public ::testing::Test {
 protected:
  ExperimentTest() {
    plan_.command = {"work"};
    plan_.knob = "power_limit_watts";
    plan_.settings = {600, 300};
    plan_.reference = 600;
    plan_.fewest_blocks = plan_.most_blocks = 2;
    options_.execute = [this](const NextRun& next) {
      if (during_run) during_run();
      Execution execution;
      execution.exit_status = status_;
      execution.measure = [next](model::SweepRun& run) {
        run.unranked.clear();  // nothing is wrong with its recording
        run.seconds = 1000 / next.setting;
        run.joules = 500;
      };
      return Result<Execution>(execution);
    };
    options_.sleep = [this](Duration) {
      ++sleeps_;
      boards_.celsius -= 1;
    };
  }

  Result<void> run() {
    auto file = recording::SweepFile::create(tree_ / "sweep.jprof", plan_, true);
    SweepPlanner planner(plan_);
    auto outcome = run_sweep(planner, boards_, *file, options_);
    runs_ = recording::read_sweep(tree_ / "sweep.jprof")->runs;
    return outcome;
  }

  const TempTree tree_;
  model::SweepPlan plan_;
  FakeBoards boards_;
  ExperimentOptions options_;
  std::function<void()> during_run;
  int status_ = 0;
  int sleeps_ = 0;
  std::vector<model::SweepRun> runs_;
};

TEST_F(ExperimentTest, SetsRunsReadsBackAndRestores) {
  const auto done = run();
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(runs_.size(), 5U);
  EXPECT_TRUE(runs_[0].is_warm_up());
  for (const auto& run : runs_) {
    EXPECT_EQ(run.requested, run.setting);
    EXPECT_EQ(run.requested_after, run.setting);
    EXPECT_EQ(run.enforced_watts, run.setting);
    EXPECT_EQ(run.start_celsius, 40);
    EXPECT_EQ(run.unranked, "");
  }
  EXPECT_EQ(boards_.limit, 650);
}

TEST_F(ExperimentTest, ARefusedSettingEndsItBeforeAnyRun) {
  boards_.refusal = Error{Errc::kPermissionDenied, "not allowed"};
  EXPECT_EQ(run().error().code, Errc::kPermissionDenied);
  EXPECT_TRUE(runs_.empty());
}

TEST_F(ExperimentTest, AFailedCommandRestoresBeforeItIsMeasured) {
  status_ = 7;
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("status 7 at 600; the settings were restored"));
  ASSERT_EQ(runs_.size(), 1U);
  EXPECT_EQ(runs_[0].unranked, "the command failed with status 7");
  EXPECT_EQ(boards_.limit, 650);
}

TEST_F(ExperimentTest, ALimitThatRevertsIsNamedAndEndsItTheSecondTime) {
  during_run = [this] { boards_.limit = 555; };
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("changed to 555 during two runs in a row"));
  ASSERT_EQ(runs_.size(), 2U);
  EXPECT_THAT(runs_[1].unranked, HasSubstr("the setting changed to 555 during the run"));
}

TEST_F(ExperimentTest, ALowerLimitOfAnotherLimiterIsNamed) {
  boards_.enforced_at_most = 400;
  ASSERT_TRUE(run());
  for (const auto& run : runs_) {
    EXPECT_EQ(run.unranked.empty(), run.setting == 300) << run.unranked;
  }
}

TEST_F(ExperimentTest, TheDeathOfTheGuardEndsIt) {
  during_run = [this] { boards_.death = Error{Errc::kUnavailable, "the guard was killed"}; };
  EXPECT_EQ(run().error().message, "the guard was killed");
  ASSERT_EQ(runs_.size(), 1U);
  EXPECT_THAT(runs_[0].unranked, HasSubstr("guard was killed"));
}

TEST_F(ExperimentTest, WaitsUntilTheBoardIsCold) {
  plan_.most_celsius = 35;
  ASSERT_TRUE(run());
  EXPECT_EQ(sleeps_, 5);
  EXPECT_EQ(runs_[0].start_celsius, 35);
}

TEST_F(ExperimentTest, DoesNotWaitForeverForACold) {
  plan_.most_celsius = 35;
  options_.sleep = [this](Duration) { ++sleeps_; };
  options_.longest_cooling = std::chrono::seconds{3};
  ASSERT_TRUE(run());
  EXPECT_EQ(sleeps_, 3 * 5);
}

}  // namespace
}  // namespace jouleprof::session
