#include "analysis/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/example_figures_test.h"
#include "analysis/compare/sides.h"

namespace jouleprof::analysis {
namespace {

using testing::ElementsAre;
using Runs = std::vector<RunFigures>;

const CompareOptions kPaired{.paired = true};

Comparison compared(const Runs& before, const Runs& after, const CompareOptions& options = {}) {
  auto made = compare(before, after, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : Comparison{};
}

bool has(const Comparison& c, std::string_view code) {
  return std::any_of(c.conditions.begin(), c.conditions.end(),
                     [&](const Condition& condition) { return condition.code == code; });
}

TEST(Compare, PairsGiveTheRatioWithAnInterval) {
  const Runs before = example_runs({100, 200, 400}, 0, 2);
  const Runs after = example_runs({90, 180, 360}, 1, 2);
  const auto c = compared(before, after, kPaired);
  EXPECT_NEAR(*c.energy.ratio(), -0.1, 1e-12);
  EXPECT_NEAR(*c.energy.before, 200, 1e-9);
  EXPECT_EQ(c.energy.verdict, Verdict::kLower);
  EXPECT_EQ(c.energy.reason, "interval_below_zero");
  // Without any spread between pairs the sensors' noise remains: 1e-4 of each of three runs.
  EXPECT_NEAR(*c.energy.log_ratio->half, 1e-4 * std::sqrt(2.0 / 3), 1e-12);
  EXPECT_EQ(c.time.verdict, Verdict::kSame);
  EXPECT_EQ(c.power.verdict, Verdict::kLower);
}

TEST(Compare, AdjacentRunsOfOneSideAreOneBlockWithoutAKnownSpread) {
  const auto c = compared(example_runs({100, 101, 102}, 0, 1), example_runs({50, 51, 50}, 5, 1));
  EXPECT_EQ(c.units_before, 1u);
  EXPECT_EQ(c.units_after, 1u);
  EXPECT_EQ(c.energy.verdict, Verdict::kInconclusive);
  EXPECT_EQ(c.energy.reason, "spread_unknown");
  EXPECT_FALSE(c.energy.low());
  EXPECT_NEAR(*c.energy.ratio(), -0.5, 0.01);
}

TEST(Compare, AKnownSpreadGivesASinglePairAVerdict) {
  CompareOptions options;
  options.spread = 0.02;
  const auto c = compared({example_run(100, 0)}, {example_run(90, 1)}, options);
  EXPECT_EQ(c.energy.verdict, Verdict::kLower);
  EXPECT_NEAR(*c.energy.high(), 0.9 * std::exp(1.959964 * 0.02 * std::sqrt(2.0)) - 1, 1e-6);
}

TEST(Compare, BlocksEndAtTheOtherSideAtAnotherBootAndAfterAnHour) {
  Runs before = example_runs({1, 1, 1, 1}, 0, 1);
  before[1].started = *before[0].started + std::chrono::minutes{59};
  before[2].started = *before[1].started + std::chrono::minutes{61};
  before[3].started = *before[2].started + std::chrono::minutes{1};
  before[3].boot_id = "later";
  Runs after = {example_run(1, 500)};
  const Blocks blocks = blocks_of(before, after);
  EXPECT_THAT(blocks.before, ElementsAre(ElementsAre(0u, 1u), ElementsAre(2u), ElementsAre(3u)));
  EXPECT_THAT(blocks.after, ElementsAre(ElementsAre(0u)));
  const Blocks alternating = blocks_of(example_runs({1, 1}, 0, 2), example_runs({1, 1}, 1, 2));
  EXPECT_EQ(alternating.before.size(), 2u);
  EXPECT_EQ(alternating.after.size(), 2u);
  after[0].started.reset();
  EXPECT_EQ(blocks_of(before, after).before.size(), 1u);
}

TEST(Compare, SensorsOfOtherBoardsKeepTheirCalibrationError) {
  const Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({104, 104, 104}, 1, 2);
  EXPECT_EQ(compared(before, after, kPaired).energy.verdict, Verdict::kHigher);
  for (auto& run : after) run.boards = {{"gpu0", "GPU-2"}};
  const auto c = compared(before, after, kPaired);
  EXPECT_EQ(c.energy.verdict, Verdict::kInconclusive);
  EXPECT_EQ(c.energy.reason, "interval_too_wide");
  EXPECT_NEAR(*c.energy.log_ratio->half, 0.05 * std::sqrt(2.0), 1e-5);
  EXPECT_TRUE(has(c, "board_differs"));
  EXPECT_EQ(c.time.verdict, Verdict::kSame);
}

TEST(Compare, CalibrationCancelsOnlyAsFarAsDomainsKeepTheirShares) {
  Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({100, 100, 100}, 1, 2);
  for (auto& run : before) run.energy.calibration = {{"gpu0", 0.05}, {"package-0", 0}};
  for (auto& run : after) run.energy.calibration = {{"gpu0", 0.02}, {"package-0", 0.04}};
  EXPECT_NEAR(*compared(before, after, kPaired).energy.log_ratio->half, 0.05, 1e-4);
}

TEST(Compare, AModelsErrorDoesNotCancel) {
  Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({80, 80, 80}, 1, 2);
  for (Runs* side : {&before, &after}) {
    for (auto& run : *side) {
      run.energy.estimated = true;
      run.energy.calibration = {{"gpu0", 0.6}};
    }
  }
  const auto c = compared(before, after, kPaired);
  EXPECT_EQ(c.energy.verdict, Verdict::kInconclusive);
  EXPECT_EQ(c.energy.reason, "estimated");
}

TEST(Compare, LessWorkIsNoSaving) {
  Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({80, 80, 80}, 1, 2);
  for (auto& run : before) run.conditions.work["windows step"] = 100;
  for (auto& run : after) run.conditions.work["windows step"] = 80;
  auto c = compared(before, after, kPaired);
  EXPECT_EQ(c.energy.verdict, Verdict::kInconclusive);
  EXPECT_EQ(c.energy.reason, "work_differs");
  EXPECT_TRUE(c.energy.before && c.energy.after);
  for (const auto* d : {&c.energy, &c.time, &c.power}) EXPECT_FALSE(d->ratio()) << d->name;
  CompareOptions accepting = kPaired;
  accepting.accepted = {"work_differs"};
  c = compared(before, after, accepting);
  EXPECT_EQ(c.energy.verdict, Verdict::kLower);
  EXPECT_TRUE(c.energy.ratio());
  EXPECT_TRUE(has(c, "work_differs"));
  // One that does nothing, and one run of several that does nothing.
  for (auto& run : before) run.conditions.work["windows step"] = 80;
  for (auto* none : {&after.front(), &after.back()}) {
    none->conditions.work.clear();
    EXPECT_EQ(compare(before, after, {})->energy.reason, "work_differs");
  }
  for (auto& run : after) run.conditions.work.clear();
  EXPECT_EQ(compare(before, after, {})->energy.reason, "work_differs");
  for (auto* side : {&before, &after}) {
    for (auto& run : *side) run.conditions.per_unit = true;
  }
  c = *compare(before, after, {});
  EXPECT_TRUE(has(c, "work_differs"));
  EXPECT_FALSE(c.is_blocked());
}

TEST(Compare, NamesWhatDiffersBetweenTheSides) {
  const auto code_of = [](auto change) {
    Runs after = {example_run(1, 1)};
    Runs before = {example_run(1, 0)};
    before[0].conditions.power_limits = {{"gpu0", 700}};
    before[0].conditions.sm_megahertz = 1900;
    before[0].conditions.start_celsius = 30;
    before[0].conditions.exit_status = 0;
    after[0].conditions = before[0].conditions;
    change(after[0]);
    const auto found = conditions_between(before, after);
    return found.size() == 1 ? (found[0].blocks ? "! " : "") + found[0].code
                             : std::to_string(found.size());
  };
  EXPECT_EQ(code_of([](RunFigures&) {}), "0");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.exit_status = 1; }), "! failed_run");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.complete = false; }), "! cut_off");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.traced = true; }), "! tracing_differs");
  EXPECT_EQ(code_of([](RunFigures& r) { r.boards["gpu1"] = "GPU-2"; }), "! domains_differ");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.power_limits["gpu0"] = 500; }),
            "! limit_differs");
  EXPECT_EQ(code_of([](RunFigures& r) { r.boot_id = "b"; }), "boot_differs");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.sm_megahertz = 1700; }), "clock_differs");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.start_celsius = 50; }), "temperature_differs");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.limited_by_heat = 0.5; }), "slowed_by_heat");
  EXPECT_EQ(code_of([](RunFigures& r) { r.conditions.simulated = true; }), "simulated");
}

TEST(Compare, TheTotalsOfOtherDomainsAreNamed) {
  const Runs before = {example_run(1, 0)};
  Runs after = {example_run(1, 60)};
  EXPECT_THAT(compare(before, after, {})->domains_after, testing::IsEmpty());
  after[0].boards = {{"gpu1", "GPU-2"}};
  const auto c = *compare(before, after, {});
  EXPECT_THAT(c.domains, testing::ElementsAre("gpu0"));
  EXPECT_THAT(c.domains_after, testing::ElementsAre("gpu1"));
}

TEST(Compare, RowsAreMatchedByNameAndDetailAndTheRestIsListed) {
  Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({100, 100, 100}, 1, 2);
  for (auto& run : before) run.rows = {example_row("kept", 10), example_row("gone", 5)};
  for (auto& run : after) run.rows = {example_row("new", 7), example_row("kept", 20)};
  for (auto& run : after) run.rows[0].detail = "[2, 3]";
  const auto c = compared(before, after, kPaired);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_EQ(c.rows[0].name, "kept");
  EXPECT_EQ(c.rows[0].verdict, Verdict::kHigher);
  EXPECT_NEAR(*c.rows[0].ratio(), 1, 1e-9);
  ASSERT_EQ(c.unmatched.size(), 2u);
  EXPECT_TRUE(c.unmatched[0].before);
  EXPECT_EQ(c.unmatched[0].row.name, "gone");
  EXPECT_FALSE(c.unmatched[1].before);
  EXPECT_EQ(c.unmatched[1].row.detail, "[2, 3]");
}

TEST(Compare, LayersWhoseImplementationWasReplacedAreOneRow) {
  Runs before = example_runs({100, 100, 100}, 0, 2);
  Runs after = example_runs({100, 100, 100}, 1, 2);
  const auto row = [](std::string name, std::string detail, double joules) {
    auto made = example_row(std::move(name), joules);
    made.detail = std::move(detail);
    return made;
  };
  for (auto& run : before) {
    run.rows = {row("0.act", "Composed [2, 3]", 10), row("0.fc", "Linear [2, 3]", 1),
                row("twice", "A [1]", 1), row("twice", "B [1]", 1)};
  }
  for (auto& run : after) {
    run.rows = {row("0.act", "GELU [2, 3]", 5), row("0.fc", "Linear [2, 4]", 1),
                row("twice", "C [1]", 1)};
  }
  const auto c = compared(before, after, kPaired);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_EQ(c.rows[0].name, "0.act");
  EXPECT_EQ(c.rows[0].detail, "Composed -> GELU [2, 3]");
  EXPECT_NEAR(*c.rows[0].before, 10, 1e-9);
  EXPECT_NEAR(*c.rows[0].after, 5, 1e-9);
  EXPECT_EQ(c.rows[0].verdict, Verdict::kLower);
  EXPECT_EQ(c.unmatched.size(), 5u);  // other shapes, and a name that one side has twice
}

TEST(Compare, ARowThatIsAbsentInOneRunHasNoFigure) {
  Runs before = example_runs({100, 100}, 0, 2);
  Runs after = example_runs({100, 100}, 1, 2);
  for (Runs* side : {&before, &after}) {
    for (auto& run : *side) run.rows = {example_row("layer", 10)};
  }
  after[1].rows[0].energy = {{}, 0, {}, false, "not_resolvable"};
  const auto c = compared(before, after, kPaired);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_FALSE(c.rows[0].after);
  EXPECT_FALSE(c.rows[0].ratio());
  EXPECT_EQ(c.rows[0].reason, "not_resolvable");
}

// 40 rows that do not differ: without Holm's correction two of them would have a verdict.
TEST(Compare, ManyRowsAreCorrected) {
  Runs before = example_runs({100, 100, 100, 100, 100}, 0, 2);
  Runs after = example_runs({100, 100, 100, 100, 100}, 1, 2);
  for (int row = 0; row < 40; ++row) {
    for (int i = 0; i < 5; ++i) {
      // One row is just significant by itself: p = 0.03.
      const double step = row == 0 ? 0.03 * (1 + 0.45 * (i - 2)) : 0.1 * (i % 2 ? 1 : -0.9);
      before[static_cast<std::size_t>(i)].rows.push_back(
          example_row("row" + std::to_string(row), 10));
      after[static_cast<std::size_t>(i)].rows.push_back(
          example_row("row" + std::to_string(row), 10 * std::exp(step)));
    }
  }
  const auto c = compared(before, after, kPaired);
  EXPECT_EQ(c.rows.size(), 40u);
  for (const auto& row : c.rows) {
    EXPECT_EQ(row.verdict, Verdict::kInconclusive) << row.name << ' ' << row.p;
    if (row.name == "row0") {
      EXPECT_LT(p_value(*row.log_ratio), 0.05);
      EXPECT_GT(*row.low(), 0);
      EXPECT_EQ(row.reason, "one_of_many");
    }
  }
}

TEST(Compare, RejectsMissingRunsAndIncompletePairs) {
  EXPECT_EQ(compare({}, {example_run(1)}, {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(compare({example_run(1)}, {}, {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(compare({example_run(1)}, example_runs({1, 2}, 0, 1), kPaired).error().code,
            Errc::kInvalidArgument);
}

TEST(Gate, ParsesAMetricAndAThreshold) {
  const auto gate = parse_gate("energy>+3%");
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->metric, CompareMetric::kEnergy);
  EXPECT_DOUBLE_EQ(gate->threshold, 0.03);
  EXPECT_DOUBLE_EQ(parse_gate(" time > 2.5 % ")->threshold, 0.025);
  EXPECT_EQ(parse_gate("power>1%")->metric, CompareMetric::kPower);
  for (const char* bad : {"", "energy", "energy>", "energy>3", "energy<3%", "joules>3%",
                          "energy>-3%", "energy>0%", "energy>x%", "energy>+%"}) {
    EXPECT_EQ(parse_gate(bad).error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(Gate, FailsOnlyWhereTheWholeIntervalIsAbove) {
  Comparison c;
  const Gate gate = *parse_gate("energy>3%");
  const auto outcome = [&](double mean, double half, bool self_test = false) {
    c.energy.log_ratio = Estimate{std::log1p(mean), half, 9};
    return judge(gate, c, self_test);
  };
  EXPECT_EQ(judge(gate, c), GateOutcome::kInconclusive);
  EXPECT_EQ(outcome(0.05, 0.01), GateOutcome::kFailed);
  EXPECT_EQ(outcome(0.05, 0.03), GateOutcome::kInconclusive);
  EXPECT_EQ(outcome(0.01, 0.01), GateOutcome::kPassed);
  EXPECT_EQ(outcome(0.01, 0.03), GateOutcome::kInconclusive);
  EXPECT_EQ(outcome(-0.5, 0.01), GateOutcome::kPassed);
  EXPECT_EQ(outcome(0, 0.02, true), GateOutcome::kFailed);
  EXPECT_EQ(outcome(0, 0.04, true), GateOutcome::kInconclusive);
  EXPECT_EQ(outcome(-0.5, 0.01, true), GateOutcome::kPassed);
  c.conditions = {{"work_differs", "", true}};
  EXPECT_EQ(outcome(0.05, 0.01), GateOutcome::kInconclusive);
  c.conditions = {};
  c.energy.log_ratio = Estimate{0.5, {}};
  EXPECT_EQ(judge(gate, c), GateOutcome::kInconclusive);
}

}  // namespace
}  // namespace jouleprof::analysis
