#include "report/results/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/example_bench_test.h"
#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

const BenchRow& row(const std::vector<BenchRow>& rows, const std::string& unit,
                    const std::string& phase = "") {
  for (const auto& r : rows) {
    if (r.unit == unit && r.phase == phase) return r;
  }
  ADD_FAILURE() << "no row " << phase << ' ' << unit;
  return rows.front();
}

TEST(Bench, RowsDivideTheWindowsEnergyByTheWorkDone) {
  const auto result = bench_result();
  const auto rows = bench_rows(result.bench, *result.energy);
  const auto& iteration = row(rows, "iteration");
  EXPECT_DOUBLE_EQ(iteration.device->joules, 3.0);
  EXPECT_DOUBLE_EQ(iteration.device->error, 0.15);
  EXPECT_DOUBLE_EQ(iteration.device->repeatability, 0.003);
  EXPECT_DOUBLE_EQ(iteration.total->joules, 3.5);
  EXPECT_DOUBLE_EQ(iteration.rest->joules + iteration.held->joules + iteration.active->joules, 3.0);
  EXPECT_DOUBLE_EQ(iteration.active->error, 0.09);
  EXPECT_DOUBLE_EQ(iteration.active->repeatability, 0.004);
  EXPECT_DOUBLE_EQ(row(rows, "sample").device->joules, 0.75);
  EXPECT_NEAR(row(rows, "GMAC").device->joules, 3.0 / 70.255337472, 1e-12);
  EXPECT_NEAR(row(rows, "million parameters").device->joules, 3.0 / 86.567656, 1e-12);
}

TEST(Bench, RowsOfASensorThatReadsLowHoldItsInterval) {
  auto result = bench_result();
  const double before = row(bench_rows(result.bench, *result.energy), "iteration").device->high();
  for (auto& domain : result.energy->profile.domains) {
    if (domain.energy) domain.energy->shift = 0.04;
  }
  const auto device = row(bench_rows(result.bench, *result.energy), "iteration").device;
  EXPECT_NEAR(device->high(), before + 0.04 * 3, 1e-6);
}

TEST(Bench, WithoutTheDeviceThatDoesTheWorkThereIsNoTotal) {
  auto result = bench_result();
  result.energy->device.reset();
  EXPECT_FALSE(row(bench_rows(result.bench, *result.energy), "iteration").total);
  const auto text = bench_to_text({result}, {});
  EXPECT_THAT(text, StartsWith("10.00 ms for one iteration\n"));
  EXPECT_THAT(text, HasSubstr("no sensor of cuda:0 was found"));
  // Its readings ended before the work did.
  result = bench_result();
  result.energy->profile.domains[0].energy.reset();
  EXPECT_FALSE(row(bench_rows(result.bench, *result.energy), "iteration").total);
  EXPECT_THAT(bench_to_text({result}, {}), StartsWith("10.00 ms for one iteration\n"));
}

TEST(Bench, RowsOfPhasesHaveTheirOwnWindows) {
  auto result = bench_result();
  result.bench.phases = {{"decode", "x, decode", {{"decoded token", 8}}}};
  model::WindowGroup group;
  group.name = "x, decode";
  group.count = 1000;
  group.energies.resize(2);
  group.energies[0].count = group.energies[1].count = 1000;
  group.energies[0].energy = measured(1600, 80, 2, "nvml", "fused");
  group.energies[1].energy = measured(160, 8, 2, "rapl", "counter");
  result.energy->phases = {group};
  auto rows = bench_rows(result.bench, *result.energy);
  EXPECT_DOUBLE_EQ(row(rows, "decoded token", "decode").device->joules, 0.2);
  EXPECT_DOUBLE_EQ(row(rows, "decoded token", "decode").total->joules, 0.22);
  EXPECT_FALSE(row(rows, "decoded token", "decode").active);
  // A sum that lacks windows is no sum.
  result.energy->phases[0].energies[1].count = 999;
  rows = bench_rows(result.bench, *result.energy);
  EXPECT_TRUE(row(rows, "decoded token", "decode").device);
  EXPECT_FALSE(row(rows, "decoded token", "decode").total);
}

TEST(Bench, Text) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/bench.txt",
                             bench_to_text({bench_result()}, {.card = true})));
}

TEST(Bench, ATerminalShowsTheAnswerIn15Lines) {
  TextOptions terminal;
  terminal.height = 24;
  terminal.details = false;
  const auto text = bench_to_text({bench_result()}, {}, terminal);
  EXPECT_THAT(text, StartsWith("10.00 ms and 3.500 J ±4.7 % for one iteration; 875.0 mJ for one "));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15) << text;
  EXPECT_THAT(text, Not(HasSubstr("\nclocks")));
  terminal.details = true;
  EXPECT_THAT(bench_to_text({bench_result()}, {}, terminal), HasSubstr("\nclocks"));
}

TEST(Bench, TextNamesWhatIsMissing) {
  auto result = bench_result();
  result.bench.steady = false;
  result.bench.not_steady = "time changed by 4.0 % within 2 s";
  result.bench.macs = std::nullopt;
  result.bench.macs_reason = "two counts differ";
  result.bench.reached_target = false;
  result.energy->profile.domains[0].levels = {};
  result.energy->profile.domains[0].levels.reason = "the power at rest is unknown";
  result.energy->profile.domains[0].held_power = model::PowerLevel{};
  const auto text = bench_to_text({result});
  EXPECT_THAT(text, HasSubstr("NOT STEADY: time changed by 4.0 %"));
  EXPECT_THAT(text, HasSubstr("no energy per GMAC: two counts differ"));
  EXPECT_THAT(text, HasSubstr("not reached within --max-time"));
  EXPECT_THAT(text, HasSubstr("the power at rest is unknown"));
  result.energy = fail(Errc::kNotFound, "the recording has no window");
  EXPECT_THAT(bench_to_text({result}), HasSubstr("unavailable: the recording has no window"));
}

TEST(Bench, SeveralCasesAreCompared) {
  auto second = bench_result();
  second.bench.batch = 8;
  second.bench.units = {{"sample", 8}};
  const auto text = bench_to_text({bench_result(), second});
  EXPECT_THAT(text, HasSubstr("energy per sample"));
  EXPECT_THAT(text, HasSubstr("375.0 mJ"));
}

TEST(Bench, JsonKeepsTheWorkloadsObjectAndAddsTheEnergy) {
  auto failed = bench_result();
  failed.energy = fail(Errc::kNotFound, "no window");
  const auto json = Json::parse(bench_to_json({{{"torch", "2.11"}}, {}}, {bench_result(), failed}));
  EXPECT_EQ(json.at("schema"), "jouleprof.bench/1");
  EXPECT_EQ(json.at("versions").at("torch"), "2.11");
  const auto& first = json.at("cases").at(0);
  EXPECT_EQ(first.at("iterations"), 1000);
  const auto& energy = first.at("energy");
  EXPECT_EQ(energy.at("profile").at("domains").at(0).at("energy_joules"), 3000);
  EXPECT_EQ(energy.at("per").at(0).at("held").at("energy_joules"), 0.4);
  EXPECT_EQ(energy.at("per").at(1).at("unit"), "sample");
  EXPECT_EQ(energy.at("per").at(1).at("device").at("energy_joules"), 0.75);
  EXPECT_EQ(energy.at("clock_limits").at(0).at("share_ratio"), 0.125);
  EXPECT_TRUE(json.at("cases").at(1).at("energy").is_null());
  EXPECT_EQ(json.at("cases").at(1).at("energy_reason"), "no window");
}

TEST(Bench, CsvHasAsManyFieldsAsColumns) {
  auto failed = bench_result();
  failed.energy = fail(Errc::kNotFound, "no window");
  auto without_device = bench_result();
  without_device.energy->device = std::nullopt;
  const std::string csv = bench_to_csv({bench_result(), failed, without_device});
  const auto lines = split(csv, '\n');
  const auto columns = split_csv(lines.front())->size();
  ASSERT_GT(lines.size(), 8U);
  for (const auto line : lines) {
    if (line.empty()) continue;
    EXPECT_EQ(split_csv(line)->size(), columns) << line;
  }
}

}  // namespace
}  // namespace jouleprof::report
