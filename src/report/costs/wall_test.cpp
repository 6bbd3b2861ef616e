#include "report/costs/wall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/recorded_run_test.h"
#include "report/format/format.h"

namespace jouleprof::report {
namespace {

using analysis::simulated::Recorded;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::int64_t kBegin = 1'700'000'003;  // of the work, since 1970

// Ten seconds of a GPU at 500 W.
analysis::Run worked() {
  Recorded run;
  run.read_gpu();
  run.recording.domains.resize(1);
  run.recording.sensors.resize(2);
  return analysis::Run(run.recording);
}

model::WallLog log_of(const std::vector<std::pair<double, double>>& readings) {
  model::WallLog log;
  log.file = "wall.csv";
  log.format = "csv";
  for (const auto& [at, watts] : readings) {
    log.readings.push_back({RealTime{std::chrono::seconds{kBegin}} + duration_of(at), watts});
  }
  return log;
}

TEST(WallEnergy, IsTheAreaBelowTheLinesBetweenReadings) {
  const auto log = log_of({{-2, 100}, {2, 300}, {4, 300}, {12, 700}});
  const RealTime begin{std::chrono::seconds{kBegin}};
  const auto all = wall_energy(log, begin, begin + std::chrono::seconds{10});
  ASSERT_TRUE(all);
  // 200 to 300 W in 2 s, 300 W for 2 s, 300 to 600 W in 6 s.
  EXPECT_EQ(all->energy, Energy::joules(500 + 600 + 2700));
  EXPECT_EQ(all->readings, 2u);
  EXPECT_EQ(all->longest_pause, std::chrono::seconds{8});
  EXPECT_EQ(all->end - all->begin, std::chrono::seconds{10});
  // Parts sum to the whole.
  const auto first = wall_energy(log, begin, begin + std::chrono::seconds{3});
  const auto second =
      wall_energy(log, begin + std::chrono::seconds{3}, begin + std::chrono::seconds{10});
  EXPECT_EQ(first->energy + second->energy, all->energy);
}

TEST(WallEnergy, IsOfTheTimeThatTheLogCovers) {
  const RealTime begin{std::chrono::seconds{kBegin}};
  const auto end = begin + std::chrono::seconds{10};
  const auto part = wall_energy(log_of({{4, 100}, {6, 100}}), begin, end);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->energy, Energy::joules(200));
  EXPECT_EQ(part->begin, begin + std::chrono::seconds{4});
  for (const auto& outside : {log_of({{-9, 1}, {-1, 1}}), log_of({{11, 1}, {12, 1}}), log_of({})}) {
    EXPECT_EQ(wall_energy(outside, begin, end).error().code, Errc::kUnavailable);
  }
}

TEST(CompareWall, HasTheTotalOfTheSameTime) {
  const auto run = worked();
  const auto all = compare_wall(run, {}, log_of({{-1, 800}, {11, 800}}));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->wall.energy, Energy::joules(8000));
  EXPECT_EQ(all->components->energy, run.profile()->domains[0].energy->energy);
  EXPECT_NEAR(*all->explained(), 5.0 / 8, 0.01);
  EXPECT_EQ(all->uncovered, Duration{});
  const auto part = compare_wall(run, {}, log_of({{6, 800}, {20, 800}}));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->wall.energy, Energy::joules(3200));
  EXPECT_NEAR(part->components->energy.joules(), 2000, 10);
  EXPECT_EQ(part->uncovered, std::chrono::seconds{6});
}

TEST(CompareWall, IsInNoTotal) {
  const auto run = worked();
  FormatOptions options;
  const auto document = [&] {
    std::ostringstream out;
    EXPECT_TRUE(find_format("json")->write(run, {}, options, out));
    return Json::parse(out.str());
  };
  const auto plain = document();
  EXPECT_TRUE(plain["wall"].is_null());
  options.wall = log_of({{-1, 800}, {11, 800}});
  auto with_wall = document();
  EXPECT_EQ(with_wall["wall"]["energy_joules"], 8000);
  EXPECT_EQ(with_wall["wall"]["components"], Json({"gpu0"}));
  with_wall["wall"] = nullptr;
  EXPECT_EQ(with_wall, plain);
}

TEST(CompareWall, SaysWhereTheSensorsReportMoreThanTheMeter) {
  const auto wall = compare_wall(worked(), {}, log_of({{-1, 100}, {11, 100}}));
  ASSERT_TRUE(wall);
  EXPECT_GT(*wall->explained(), 1);
  const std::string text = wall_to_text(*wall, {});
  EXPECT_THAT(text, HasSubstr("more than the meter reported"));
  EXPECT_THAT(text, HasSubstr("not in the total"));
}

}  // namespace
}  // namespace jouleprof::report
