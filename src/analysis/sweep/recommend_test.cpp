#include "analysis/sweep/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

// The setting is chosen by the same figures, which favours one whose errors happen to be low.
TEST(Recommend, IntervalsOfTheRecommendedSettingHoldTheTruth) {
  constexpr int kSweeps = 300;
  const auto seconds = [](double limit) { return 100 / std::pow((limit - 80) / 520, 0.35); };
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.05);
  int wrong_slowdowns = 0;
  int wrong_savings = 0;
  for (int i = 0; i < kSweeps; ++i) {
    std::vector<SweepPoint> points;
    for (double limit = 600; limit >= 200; limit -= 50) {
      auto& point = points.emplace_back(SweepPoint{limit, {}});
      for (unsigned block = 1; block <= 2; ++block) {
        point.samples.push_back({seconds(limit) * std::exp(noise(random)),
                                 limit * seconds(limit) * std::exp(noise(random)), block});
      }
    }
    const auto sweep = sweep_of(std::move(points));
    auto options = with(Objective::kCost);
    options.draws = 500;
    const auto found = recommend(sweep, options);
    ASSERT_TRUE(found);
    const auto& best = found->points[found->best];
    const double limit = best.point->setting;
    const double slowdown = seconds(limit) / seconds(600) - 1;
    const double saving = 1 - limit * (1 + slowdown) / 600;
    const auto holds = [](const Interval& interval, double truth) {
      return interval.low <= truth && truth <= interval.high;
    };
    wrong_slowdowns += holds(*best.slowdown.interval, slowdown) ? 0 : 1;
    wrong_savings += holds(*best.saving.interval, saving) ? 0 : 1;
    const auto& reference = found->points[found->reference];
    EXPECT_EQ(reference.saving.interval->low, 0);
    EXPECT_EQ(reference.saving.interval->high, 0);
  }
  EXPECT_LE(wrong_slowdowns, kSweeps * 7 / 100);
  EXPECT_LE(wrong_savings, kSweeps * 7 / 100);
}

TEST(Recommend, OneSettingNamesWhatMeasuresAnother) {
  const auto message = [](bool is_own, bool observe) {
    model::SweepPlan plan;
    plan.observe = observe;
    auto sweep = is_own ? analysis::sweep_of(plan, {}) : Sweep();
    sweep.points = {{300, {{10, 3000}}}};
    return recommend(sweep, {}).error().message;
  };
  EXPECT_THAT(message(true, true), HasSubstr("; `jouleprof sweep --observe --resume` goes on"));
  EXPECT_THAT(message(true, false), HasSubstr("; `jouleprof sweep --resume` goes on"));
  EXPECT_THAT(message(false, false), ::testing::EndsWith("this sweep has 1"));
}

TEST(Recommend, TheCostOfSeveralGpusHasTheLimitsOfAllOfThem) {
  // Each of four GPUs as in single(): the same cost, times 4, and so the same choice.
  auto four = single();
  four.gpus = 4;
  for (auto& point : four.points) point.samples[0].joules *= 4;
  const auto found = recommend(four, with(Objective::kCost));
  ASSERT_TRUE(found);
  EXPECT_EQ(four.points[found->best].setting, 250);
  EXPECT_DOUBLE_EQ(found->points[1].score, 4 * 2860.0);
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

TEST(Recommend, TheMostProbableIsTakenAndTheFasterNamedAsEqual) {
  const std::vector<SweepPoint> truth{
      {300, {{10, 3000}}}, {250, {{10.4, 2405}}}, {200, {{12, 2400}}}};
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto sweep = noisy(truth, 5, seed);
    const auto found = recommend(sweep);
    const auto& least = found->points[1].mean.joules < found->points[2].mean.joules ? 1U : 2U;
    EXPECT_EQ(found->best, least) << seed;
    EXPECT_THAT(found->ties, testing::Contains(found->best));
  }
}

// Two measurements of each, as a table of another tool has them: many minima, one of them deep.
TEST(Recommend, FewNoisyRepeatsAreNeverWorseThanTheLeastMean) {
  const std::vector<SweepPoint> truth{{700, {{10, 3000}}},   {600, {{10.2, 4100}}},
                                      {500, {{10.5, 2900}}}, {400, {{11, 5000}}},
                                      {300, {{12, 2800}}},   {200, {{15, 1600}}}};
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const auto sweep = noisy(truth, 2, seed);
    const auto found = recommend(sweep);
    EXPECT_EQ(sweep.points[found->best].setting, 200) << seed;
    EXPECT_GT(*found->points[found->best].probability_of_best, 0.99) << seed;
    EXPECT_THAT(found->ties, ElementsAre(found->best)) << seed;
    EXPECT_LT(*found->regret, 0.01) << seed;
  }
}

TEST(Recommend, NoSettingIsMoreProbablyTheBestThanTheRecommendedOne) {
  const std::vector<SweepPoint> truth{
      {300, {{10, 2400}}}, {250, {{10.4, 2402}}}, {200, {{12, 2400}}}, {150, {{14, 2401}}}};
  for (unsigned seed = 1; seed <= 60; ++seed) {
    auto sweep = noisy(truth, 3, seed);
    sweep.points[seed % 4].samples.resize(1);
    RecommendOptions options;
    options.draws = 200;
    const auto found = recommend(sweep, options);
    for (const auto& point : found->points) {
      EXPECT_LE(*point.probability_of_best, *found->points[found->best].probability_of_best);
    }
  }
}

TEST(Recommend, AConstraintHoldsWithItsConfidence) {
  // 250 W is 0.2 % too slow; 200 W is much slower.
  const std::vector<SweepPoint> truth{
      {300, {{10, 3000}}}, {250, {{10.52, 2600}}}, {200, {{12, 2400}}}};
  RecommendOptions options;
  options.max_slowdown = 0.05;
  options.draws = 400;
  int exceeded = 0;
  constexpr int kSweeps = 200;
  for (unsigned seed = 1; seed <= kSweeps; ++seed) {
    const auto sweep = noisy(truth, 3, seed);
    const auto found = recommend(sweep, options);
    exceeded += found->best != 0 ? 1 : 0;
    EXPECT_GE(*found->points[found->best].probability_within, kConstraintConfidence);
  }
  EXPECT_LE(exceeded, kSweeps * 8 / 100);
  const std::vector<SweepPoint> fast{
      {300, {{10, 3000}}}, {250, {{10.2, 2600}}}, {200, {{12, 2400}}}};
  EXPECT_EQ(best_of(noisy(fast, 5, 1), options), 250);
}

// A constraint is not met by luck beyond a setting that may not meet it.
TEST(Recommend, SettingsBeyondOneThatMayNotMeetAConstraintAreNotFeasible) {
  auto sweep = noisy({{300, {{10, 3000}}}, {250, {{10.5, 2600}}}, {200, {{10.1, 2400}}}}, 3, 4);
  RecommendOptions options;
  options.max_slowdown = 0.05;
  const auto found = recommend(sweep, options);
  EXPECT_FALSE(found->points[1].feasible);
  EXPECT_GT(*found->points[2].probability_within, kConstraintConfidence);
  EXPECT_FALSE(found->points[2].feasible);
  EXPECT_EQ(found->best, 0U);
  options = {};
  options.max_watts = 255;
  const auto low = recommend(sweep, options);
  EXPECT_TRUE(low->points[1].feasible && low->points[2].feasible);
  EXPECT_FALSE(low->points[0].feasible);
}

TEST(Recommend, OneDegreeOfFreedomGivesFiniteIntervals) {
  auto sweep = sweep_of({{300, {{10, 3000}, {10.4, 3100}}}, {200, {{12, 2400}}}});
  const auto found = recommend(sweep);
  ASSERT_TRUE(found->points[1].saving.interval);
  EXPECT_TRUE(std::isfinite(found->points[1].saving.interval->low));
  EXPECT_LE(*found->regret, 1);
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
