#include "analysis/sweep/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace jouleprof::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep sweep_of(std::vector<SweepPoint> points) {
  Sweep sweep;
  sweep.knob = "power_limit_watts";
  sweep.points = std::move(points);
  return sweep;
}

// Once each, as a table of another tool has them.
Sweep single() {
  return sweep_of(
      {{300, {{10, 3000}}}, {250, {{10.4, 2600}}}, {200, {{12, 2400}}}, {150, {{16, 2500}}}});
}

RecommendOptions with(Objective objective) {
  RecommendOptions options;
  options.objective = objective;
  return options;
}

double best_of(const Sweep& sweep, const RecommendOptions& options) {
  const auto found = recommend(sweep, options);
  EXPECT_TRUE(found) << found.error().message;
  return found ? sweep.points[found->best].setting : 0;
}

TEST(Recommend, EachObjectiveHasItsOwnBest) {
  EXPECT_EQ(best_of(single(), with(Objective::kEnergy)), 200);
  EXPECT_EQ(best_of(single(), with(Objective::kEdp)), 250);
  EXPECT_EQ(best_of(single(), with(Objective::kEd2p)), 250);
  EXPECT_EQ(best_of(single(), with(Objective::kTime)), 300);
  // 0.5 E + 0.5 x 300 W x t: 3000, 2860, 3000, 3650.
  EXPECT_EQ(best_of(single(), with(Objective::kCost)), 250);
}

TEST(Recommend, TheLeastEnergyWithinTheConstraintIsTakenNotTheLeastWatt) {
  // 225 W is within 10 % and takes more energy than 250 W does.
  const auto sweep = sweep_of({{300, {{10, 3000}}}, {250, {{10.4, 2600}}}, {225, {{10.9, 2650}}}});
  RecommendOptions options;
  options.max_slowdown = 0.10;
  EXPECT_EQ(best_of(sweep, options), 250);
}

TEST(Recommend, SavingAndSlowdownAreAgainstTheReference) {
  const auto sweep = single();
  const auto found = recommend(sweep);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reference, 0U);
  EXPECT_DOUBLE_EQ(found->points[2].saving.ratio, 0.2);
  EXPECT_DOUBLE_EQ(found->points[2].slowdown.ratio, 0.2);
  EXPECT_FALSE(found->points[2].saving.interval);
  EXPECT_FALSE(found->points[2].probability_of_best);
  RecommendOptions options;
  options.reference = 250;
  const auto other = recommend(sweep, options);
  ASSERT_TRUE(other);
  EXPECT_NEAR(other->points[2].saving.ratio, 1 - 2400.0 / 2600, 1e-12);
}

TEST(Recommend, ThePowerConstraintHolds) {
  RecommendOptions options;
  options.max_watts = 160;
  EXPECT_EQ(best_of(single(), options), 150);
  options.max_watts = 100;
  const auto none = recommend(single(), options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("the least mean power is 156.2 W"));
}

TEST(Recommend, PointsThatAnotherBeatsInBothAreNotOnTheParetoFront) {
  const auto sweep = single();
  const auto found = recommend(sweep);
  std::vector<bool> front;
  for (const auto& p : found->points) front.push_back(p.on_pareto_front);
  EXPECT_THAT(front, ElementsAre(true, true, true, false));
}

TEST(Recommend, BadInputIsRefusedWithWhatToDo) {
  EXPECT_FALSE(recommend(sweep_of({{300, {{10, 3000}}}})));
  auto options = with(Objective::kCost);
  options.eta = 1.5;
  EXPECT_FALSE(recommend(single(), options));
  options = {};
  options.reference = 275;
  EXPECT_THAT(recommend(single(), options).error().message, HasSubstr("no measurement at 275"));
  auto clocks = single();
  clocks.knob = "sm_clock_megahertz";
  EXPECT_FALSE(recommend(clocks, with(Objective::kCost)));
}

// Repeated measurements with 1 % of noise around known means.
Sweep noisy(const std::vector<SweepPoint>& truth, int repeats, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.01);
  std::vector<SweepPoint> points;
  for (const auto& p : truth) {
    auto& made = points.emplace_back(SweepPoint{p.setting, {}});
    for (int i = 0; i < repeats; ++i) {
      made.samples.push_back(
          {p.samples[0].seconds * noise(random), p.samples[0].joules * noise(random)});
    }
  }
  return sweep_of(std::move(points));
}

TEST(Recommend, OfSettingsThatAreEqualWithinErrorTheFastestIsTaken) {
  const std::vector<SweepPoint> truth{
      {300, {{10, 3000}}}, {250, {{10.4, 2405}}}, {200, {{12, 2400}}}};
  int faster = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    faster += best_of(noisy(truth, 5, seed), {}) == 250 ? 1 : 0;
  }
  EXPECT_GE(faster, 36);
}

TEST(Recommend, IntervalsOfSavingCoverTheTruth) {
  const std::vector<SweepPoint> truth{
      {300, {{10, 3000}}}, {250, {{10.4, 2600}}}, {200, {{12, 2400}}}};
  int covered = 0;
  constexpr int kSweeps = 200;
  for (unsigned seed = 1; seed <= kSweeps; ++seed) {
    const auto sweep = noisy(truth, seed % 2 == 0 ? 3 : 12, seed);
    RecommendOptions options;
    options.draws = 400;
    const auto found = recommend(sweep, options);
    const auto& interval = found->points[2].saving.interval;
    ASSERT_TRUE(interval);
    covered += interval->low <= 0.2 && interval->high >= 0.2 ? 1 : 0;
  }
  EXPECT_GE(covered, kSweeps * 92 / 100);
}

TEST(Recommend, ProbabilitiesOfBeingBestSumToOne) {
  const std::vector<SweepPoint> truth{
      {300, {{10, 3000}}}, {250, {{10.4, 2410}}}, {200, {{12, 2400}}}};
  const auto sweep = noisy(truth, 4, 3);
  const auto found = recommend(sweep);
  double sum = 0;
  for (const auto& p : found->points) sum += *p.probability_of_best;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_LT(*found->points[0].probability_of_best, 0.01);
}

}  // namespace
}  // namespace jouleprof::analysis
