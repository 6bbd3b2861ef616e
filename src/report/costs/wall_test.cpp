#include "report/costs/wall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/recorded_run_test.h"
#include "report/format/format.h"
#include "report/json/json_format.h"

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

TEST(WallEnergy, IsNotKnownWhereReadingsAreFarApart) {
  constexpr double kDay = 86400;
  const RealTime begin{std::chrono::seconds{kBegin}};
  const auto end = begin + std::chrono::seconds{100};
  const auto far = wall_energy(log_of({{-kDay, 1}, {kDay, 599}}), begin, end);
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, Errc::kUnavailable);
  EXPECT_THAT(far.error().message, HasSubstr("wall.csv has no reading for 1 min 40 s from"));
  // Of a run with a gap of the log, the longest part without one.
  std::vector<std::pair<double, double>> readings;
  for (int t = 0; t <= 100; ++t) {
    if (t <= 30 || t >= 50) readings.emplace_back(t, 100);
  }
  const auto part = wall_energy(log_of(readings), begin, end);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, begin + std::chrono::seconds{50});
  EXPECT_EQ(part->end, end);
  EXPECT_EQ(part->energy, Energy::joules(5000));
  EXPECT_EQ(part->readings, 51u);
  EXPECT_EQ(part->longest_pause, std::chrono::seconds{1});
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

// Two minutes of a GPU that draws 200 and 500 W for 10 s each.
Recorded alternating() {
  Recorded run;
  run.power.hold(120, 3);
  for (int i = 0; i < 6; ++i) {
    run.power.hold(200, 10);
    run.power.hold(500, 10);
  }
  run.power.hold(120, 4);
  run.recording.readings.powers = run.gpu.samples(run.power, 0, 126);
  run.recording.readings.counters = run.gpu.reads(run.power, 0.1, 126);
  run.recording.run.work_end = analysis::simulated::at(123);
  run.recording.idle_spans.clear();
  run.recording.clock_points.back() = {
      analysis::simulated::at(126), RealTime{std::chrono::seconds{kBegin + 123}}, {}};
  run.recording.domains.resize(1);
  run.recording.sensors.resize(2);
  return run;
}

// A meter at the wall of it: each second, `ratio` times the GPU's and 130 W, `late` seconds after.
std::vector<std::pair<double, double>> wall_of(double ratio, double late = 0) {
  std::vector<std::pair<double, double>> readings;
  for (int t = -5; t <= 130; ++t) {
    const double at = t - late;
    const bool works = at >= 0 && at < 120;
    const double gpu = !works ? 120 : std::fmod(at, 20) < 10 ? 200 : 500;
    readings.emplace_back(t, 130 + ratio * gpu + t % 3);
  }
  return readings;
}

TEST(CompareWall, SaysHowTheMeterFollows) {
  const analysis::Run run(alternating().recording);
  auto wall = compare_wall(run, {}, log_of(wall_of(1.1)));
  ASSERT_TRUE(wall) << wall.error().message;
  ASSERT_TRUE(wall->slope);
  EXPECT_NEAR(wall->slope->ratio, 1.1, wall->slope->error);
  EXPECT_LT(wall->slope->error, 0.2);
  EXPECT_THAT(wall_to_text(*wall, {}), HasSubstr("one more watt at the sensors is"));
  // A clock that is wrong by seconds is no reason to refuse a meter.
  wall = compare_wall(run, {}, log_of(wall_of(1.1, 10)));
  ASSERT_TRUE(wall) << wall.error().message;
  EXPECT_TRUE(wall->slope->follows());
}

TEST(CompareWall, RefusesAMeterThatDoesNotFollow) {
  const analysis::Run run(alternating().recording);
  const auto wall = compare_wall(run, {}, log_of(wall_of(0)));
  ASSERT_FALSE(wall);
  EXPECT_EQ(wall.error().code, Errc::kCorrupt);
  EXPECT_THAT(wall.error().message, HasSubstr("does not follow this machine"));
  // Of a load without changes nothing is known.
  EXPECT_FALSE(compare_wall(worked(), {}, log_of({{-1, 800}, {11, 800}}))->slope);
}

TEST(CompareWall, AMeterThatWasReadDuringTheRunIsALog) {
  auto recorded = alternating();
  const analysis::Run without(recorded.recording);
  EXPECT_TRUE(recorded_walls(without).empty());
  model::Domain domain;
  domain.id = model::DomainId{1};
  domain.kind = model::DomainKind::kPlatform;
  domain.device = "wall";
  recorded.recording.domains.push_back(domain);
  model::Sensor sensor;
  sensor.id = model::SensorId{2};
  sensor.domain = domain.id;
  sensor.kind = model::SensorKind::kPowerAverage;
  sensor.name = "wall:shelly:plug";
  recorded.recording.sensors.push_back(sensor);
  for (const auto& [at, watts] : wall_of(0)) {
    if (at < -2) continue;
    recorded.recording.readings.powers.push_back(
        {sensor.id, analysis::simulated::at(3 + at), Power::watts(watts)});
  }
  const analysis::Run run(recorded.recording);
  const auto logs = recorded_walls(run);
  ASSERT_EQ(logs.size(), 1u);
  const auto* log = logs.data();
  EXPECT_EQ(log->file, "shelly:plug");
  EXPECT_EQ(log->format, "live");
  EXPECT_EQ(log->readings.front().at, RealTime{std::chrono::seconds{kBegin - 2}});
  std::ostringstream out;
  EXPECT_TRUE(find_format("text")->write(run, {}, {}, out));
  EXPECT_THAT(out.str(), HasSubstr("refused: shelly:plug does not follow"));
}

TEST(CompareWall, ComponentsErrorHoldsAnIntervalThatIsNotAroundTheEnergy) {
  WallComparison wall;
  wall.wall.end = wall.wall.begin + std::chrono::seconds{1};
  wall.components = model::Measurement{};
  wall.components->energy = Energy::joules(100);
  wall.components->error = Energy::joules(5);
  wall.components->shift = 0.04;
  EXPECT_THAT(write_json(wall_json(wall)), HasSubstr("\"components_error_joules\": 9.000000"));
}

TEST(CompareWall, HasTheIntervalOfAMeterThatWasReadAndNamesWhatIsUnavailable) {
  Recorded recorded;
  recorded.read_gpu();
  recorded.recording.domains[1].unavailable_reason = "no permission";
  recorded.recording.sensors.resize(2);
  recorded.recording.domains.push_back(
      {model::DomainId{7}, model::DomainKind::kPlatform, "wall", "a meter", "", {}, true, ""});
  model::Sensor sensor{model::SensorId{9},
                       model::DomainId{7},
                       model::SensorKind::kPowerAverage,
                       "wall:plug",
                       {},
                       {}};
  sensor.traits.scale = model::ScaleError::symmetric(0.02);
  recorded.recording.sensors.push_back(sensor);
  // The meter has no energy of the run, which ends at 13 s, and one of 3 s in it.
  const auto with_gap = [&](double from, double to) {
    auto recording = recorded.recording;
    for (double t = 0; t <= 18; t += 0.5) {
      if (t > from && t < to) continue;
      recording.readings.powers.push_back(
          {sensor.id, analysis::simulated::at(t), Power::watts(800)});
    }
    return analysis::Run(std::move(recording));
  };
  const auto run = with_gap(6, 17);
  ASSERT_FALSE(run.profile()->domains[2].energy);
  const auto logs = recorded_walls(run);
  ASSERT_EQ(logs.size(), 1u);
  const auto wall = compare_wall(run, {}, logs[0]);
  ASSERT_TRUE(wall) << wall.error().message;
  EXPECT_GE(wall->log.error.value_or(0), 0.02);
  const std::string text = wall_to_text(*wall, {});
  EXPECT_THAT(text, testing::ContainsRegex("wall +2.400 kJ ±[0-9.]+ % in 3.000 s"));
  EXPECT_THAT(text, HasSubstr("is of package-0 (unavailable), parts"));
  // The page has the object of the JSON.
  const auto written = [&](const char* format, bool redact) {
    FormatOptions options;
    options.redact = redact;
    std::ostringstream out;
    EXPECT_TRUE(find_format(format)->write(run, {}, options, out));
    return out.str();
  };
  const std::string page = written("html", false);
  const std::string_view begin = "id=\"data\">";
  const auto at = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_EQ(data["profile"]["wall"], Json::parse(written("json", false))["wall"]);
  EXPECT_EQ(data["profile"]["wall"]["file"], "plug");
  EXPECT_THAT(written("html", true), HasSubstr("\"file\":\"(redacted)\""));
  // In a gap that a log may have, it has none where its domain has none.
  const auto short_gap = with_gap(3, 9.5);
  ASSERT_FALSE(short_gap.profile()->domains[2].energy);
  const auto refused = compare_wall(short_gap, {}, recorded_walls(short_gap).at(0));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no usable readings of wall:plug for"));
}

TEST(WallSlope, HasAnIntervalThatCoversTheTruth) {
  // Noise of a meter with fans: a slow part, alike in neighbours, and a fast one.
  unsigned state = 7;
  const auto random = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8) / 0x1p24 - 0.5;
  };
  int inside = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<WallPiece> pieces;
    double slow = 0;
    for (int i = 0; i < 30; ++i) {
      slow = 0.6 * slow + 10 * random();
      const double sensors = 300 + 200 * random();
      pieces.push_back({sensors, 90 + 1.08 * sensors + slow + 10 * random()});
    }
    const auto slope = wall_slope(pieces);
    ASSERT_TRUE(slope);
    inside += std::abs(slope->ratio - 1.08) <= slope->error;
  }
  EXPECT_GE(inside, kRounds * 93 / 100);
  EXPECT_FALSE(wall_slope(std::vector<WallPiece>(30, {300, 400})));
  EXPECT_FALSE(wall_slope({{1, 1}, {100, 100}}));
}

}  // namespace
}  // namespace jouleprof::report
