#include "report/results/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

analysis::Difference difference(std::string name, double before, double change, double half,
                                analysis::Verdict verdict, std::string reason) {
  analysis::Difference d;
  d.name = std::move(name);
  d.before = before;
  d.after = before * (1 + change);
  d.log_ratio = analysis::Estimate{std::log1p(change), half, 9};
  d.p = 0.001;
  d.verdict = verdict;
  d.reason = std::move(reason);
  d.sensor_noise = 0.0001;
  return d;
}

ComparisonReport example() {
  using analysis::Verdict;
  ComparisonReport report;
  auto& c = report.comparison;
  report.before = "python old.py";
  report.after = "python new.py";
  report.options.paired = true;
  report.by = analysis::CompareBy::kLayer;
  for (int i = 1; i <= 10; ++i) {
    c.before.push_back(std::to_string(i) + "-before.jprof");
    c.after.push_back(std::to_string(i) + "-after.jprof");
  }
  c.units_before = c.units_after = 10;
  c.domains = {"gpu0"};
  c.excluded = {"package-0 (estimated)"};
  c.energy = difference("energy", 8947, -0.049, 0.005, Verdict::kLower, "interval_below_zero");
  c.time = difference("time", 30.2, 0.001, 0.002, Verdict::kSame, "within_threshold");
  c.power = difference("power", 296.3, -0.05, 0.005, Verdict::kLower, "interval_below_zero");
  c.rows = {difference("blocks.0.mlp", 4000, -0.11, 0.01, Verdict::kLower, "interval_below_zero"),
            difference("blocks.0.attn|<b>", 3000, 0.02, 0.05, Verdict::kInconclusive,
                       "interval_too_wide")};
  c.rows[0].detail = "Mlp [64, 197, 768]";
  c.rows.push_back({});
  c.rows.back().name = "head";
  c.rows.back().reason = "not_resolvable";
  analysis::FigureRow gelu;
  gelu.name = "gelu";
  gelu.energy.value = 12.5;
  c.unmatched.push_back({true, gelu});
  c.conditions = {
      {"clock_differs", "the mean SM clock was 1755 MHz before and 1900 MHz after", false}};
  report.gates = {{*analysis::parse_gate("energy>+3%"), analysis::GateOutcome::kPassed},
                  {*analysis::parse_gate("time>1%"), analysis::GateOutcome::kFailed},
                  {*analysis::parse_gate("power>1%"), analysis::GateOutcome::kInconclusive}};
  return report;
}

TEST(ComparisonText, IsTheGoldenOne) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/comparison.txt", comparison_to_text(example())));
}

TEST(ComparisonText, NamesAnUnknownSpreadAndRefusals) {
  auto report = example();
  report.options.paired = false;
  report.comparison.units_before = report.comparison.units_after = 1;
  report.comparison.energy.log_ratio->half.reset();
  report.comparison.energy.verdict = analysis::Verdict::kInconclusive;
  report.comparison.energy.reason = "spread_unknown";
  report.comparison.conditions = {{"work_differs", "windows step: 100 before, 80 after", true}};
  const std::string text = comparison_to_text(report);
  EXPECT_THAT(text, AllOf(HasSubstr("1 block of runs before and 1 block after"),
                          HasSubstr("unknown"), HasSubstr("spread_unknown: the spread"),
                          HasSubstr("REFUSED"), HasSubstr("--accept CODE")));
}

TEST(ComparisonText, NamesTheDevicesOfEachSide) {
  auto report = example();
  EXPECT_THAT(comparison_to_text(report), HasSubstr("energy of  gpu0;"));
  report.comparison.domains_after = {"gpu1"};
  EXPECT_THAT(comparison_to_text(report), HasSubstr("energy of  gpu0 before, gpu1 after;"));
  EXPECT_EQ(Json::parse(comparison_to_json(report))["domains_after"], Json{"gpu1"});
}

TEST(VerdictSentence, SaysTheAnswerOrWhatWouldDecide) {
  using analysis::Verdict;
  auto report = example();
  EXPECT_EQ(verdict_sentence(report),
            "'python new.py' uses 1.052 times less energy than 'python old.py' (95 %: 1.046 to "
            "1.057)");
  report.per = "step";
  report.comparison.energy = difference("energy", 10, 1, 0.1, Verdict::kHigher, "");
  EXPECT_THAT(verdict_sentence(report),
              testing::StartsWith("a window step of 'python new.py' uses 2 times more energy"));
  report.per.clear();
  auto& energy = report.comparison.energy;
  energy = difference("energy", 10, 0.02, 0.05, Verdict::kInconclusive, "interval_too_wide");
  energy.log_ratio->spread = 0.05 / 2.262;  // of ten pairs
  energy.log_ratio->degrees = 9;
  EXPECT_EQ(verdict_sentence(report),
            "The difference of energy cannot be seen: +2.00 % (95 %: -2.97 to +7.23 %); about 41 "
            "more pairs would decide. The time is the same: +0.10 % (95 %: -0.10 to +0.30 %)");
  energy.log_ratio->calibration = 0.05;  // on two boards, no number of runs takes it out
  EXPECT_THAT(verdict_sentence(report), HasSubstr("not even 1000 pairs would decide"));
  energy.reason = "estimated";
  EXPECT_THAT(verdict_sentence(report), HasSubstr("more runs do not help, a sensor does"));

  energy = {};
  energy.reason = "not_positive";
  energy.at_most = 0.0123;
  report.comparison.time =
      difference("time", 0.3, 0.006, 0.05, Verdict::kInconclusive, "interval_too_wide");
  EXPECT_EQ(verdict_sentence(report),
            "No difference of energy above 12.30 mJ can be seen (95 %: -12.30 mJ to +12.30 mJ): it "
            "is below what can be resolved. Longer commands resolve it; --whole-machine compares "
            "all devices. No difference of time can be seen: +0.60 % (95 %: -4.31 to +5.76 %)");
  energy.reason = "undivided";
  EXPECT_THAT(verdict_sentence(report),
              AllOf(HasSubstr("+12.30 mJ): which part is the command's is not known. "
                              "--whole-machine compares all devices"),
                    testing::Not(HasSubstr("Longer"))));

  energy = difference("energy", 10, 0.02, 0.05, Verdict::kInconclusive, "");
  energy.reason = "spread_unknown";
  energy.log_ratio->half.reset();
  report.comparison.before = {"a.jprof"};
  report.comparison.after = {"b.jprof"};
  EXPECT_THAT(
      verdict_sentence(report),
      AllOf(testing::StartsWith("Two single recordings cannot decide"), HasSubstr("+2.00 %"),
            HasSubstr("compare 'COMMAND BEFORE' 'COMMAND AFTER' runs both in turn")));
  report.comparison.conditions = {{"work_differs", "steps", true}};
  EXPECT_EQ(verdict_sentence(report), "No verdict: the sides cannot be compared (work_differs)");
}

TEST(ComparisonJson, HasEveryFigure) {
  const auto j = Json::parse(comparison_to_json(example()));
  EXPECT_EQ(j["schema"], "jouleprof.comparison/2");
  EXPECT_NEAR(j["energy"]["change_ratio"].get<double>(), -0.049, 1e-6);
  EXPECT_NEAR(j["energy"]["interval_ratio"][0].get<double>(), 0.951 * std::exp(-0.005) - 1, 1e-6);
  EXPECT_EQ(j["energy"]["verdict"], "lower");
  EXPECT_NEAR(j["time"]["before_seconds"].get<double>(), 30.2, 1e-6);
  EXPECT_EQ(j["rows"].size(), 3u);
  EXPECT_TRUE(j["rows"][2]["change_ratio"].is_null());
  EXPECT_TRUE(j["rows"][2]["before_joules"].is_null());
  EXPECT_EQ(j["rows"][2]["reason"], "not_resolvable");
  EXPECT_EQ(j["unmatched"][0]["side"], "before");
  EXPECT_EQ(j["gates"][1]["outcome"], "failed");
  EXPECT_EQ(j["conditions"][0]["blocks"], false);
  auto unknown = example();
  unknown.comparison.energy.log_ratio->half.reset();
  const auto k = Json::parse(comparison_to_json(unknown));
  EXPECT_TRUE(k["energy"]["interval_ratio"].is_null());
  EXPECT_TRUE(k["energy"]["p"].is_null());
}

TEST(ComparisonMarkdown, NamesCannotBreakTheTable) {
  const std::string text = comparison_to_markdown(example());
  EXPECT_THAT(text, AllOf(HasSubstr("### Energy: lower"), HasSubstr("| energy | 8.947 kJ |"),
                          HasSubstr("**lower**"), HasSubstr("blocks.0.attn\\|&lt;b>"),
                          HasSubstr("gate energy>+3%: passed")));
}

TEST(ComparisonMarkdown, ANameOfMarkupStaysAsItIs) {
  auto report = example();
  report.comparison.rows.front().name = "&lt;b>";
  EXPECT_THAT(comparison_to_markdown(report), HasSubstr("&amp;lt;b>"));
}

TEST(ComparisonJunit, CountsFailedAndInconclusiveGates) {
  const std::string text = comparison_to_junit(example());
  EXPECT_THAT(text, AllOf(HasSubstr("tests=\"3\" failures=\"1\" errors=\"1\""),
                          HasSubstr("name=\"energy&gt;+3%\""), HasSubstr("<failure message=")));
  auto report = example();
  report.gates.clear();
  EXPECT_THAT(comparison_to_junit(report), HasSubstr("tests=\"1\" failures=\"0\" errors=\"0\""));
}

TEST(ComparisonGithub, WritesOneCommandForEachGateAndCondition) {
  const std::string text = comparison_to_github(example());
  EXPECT_THAT(text, AllOf(HasSubstr("::notice title=jouleprof gate::energy>+3%25: passed"),
                          HasSubstr("::error title=jouleprof gate::time>1%25: failed"),
                          HasSubstr("::warning title=jouleprof gate::power"),
                          HasSubstr("::warning title=jouleprof clock_differs::")));
}

TEST(ComparisonBenchmark, IsAListOfFiguresAfter) {
  const auto j = Json::parse(comparison_to_benchmark(example()));
  ASSERT_EQ(j.size(), 4u);  // the row without a figure is left out
  EXPECT_EQ(j[0]["name"], "energy");
  EXPECT_EQ(j[0]["unit"], "J");
  EXPECT_NEAR(j[0]["value"].get<double>(), 8947 * 0.951, 1e-6);
  EXPECT_TRUE(j[0]["range"].get<std::string>().starts_with("± "));
  EXPECT_EQ(j[2]["name"], "blocks.0.mlp Mlp [64, 197, 768]");
}

}  // namespace
}  // namespace jouleprof::report
