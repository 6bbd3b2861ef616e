#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/json/json.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/calibration/state_folder_fixture.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;
using model::KnownLevel;
using model::KnownLevels;
using testing::AllOf;
using testing::HasSubstr;

class LevelStore : public StateFolder {
 protected:
  // Observed `day` days after 1970.
  static KnownLevel level(double watts, double spread, int day = 20000) {
    return {Power::watts(watts), Power::watts(spread), 31.0, RealTime{day * 24h}};
  }
  static void keep(const std::string& uuid, const KnownLevels& levels) {
    const auto kept = keep_levels({{uuid, levels}});
    ASSERT_TRUE(kept) << kept.error().message;
  }
};

TEST_F(LevelStore, ReturnsWhatWasStored) {
  const KnownLevel rest{Power::watts(80.25), Power::watts(0.5), 31.0,
                        RealTime{Duration{1'795'308'750'123'456'789}}};
  KnownLevel held = level(127.1, 0.25);
  held.temperature_celsius.reset();
  keep("GPU-1", {rest, held});
  keep("GPU-2", {std::nullopt, held});
  const BoardLevels expected{{"GPU-1", {rest, held}}, {"GPU-2", {std::nullopt, held}}};
  EXPECT_EQ(read_levels(), expected);
}

TEST_F(LevelStore, LevelsAreKeptIndependentlyOfOneAnotherAndOfTraits) {
  GpuTraits traits;
  traits.ring.refresh = 20ms;
  keep("GPU-1", {level(80, 0.5), {}});
  ASSERT_TRUE(keep_calibrations({{"GPU-1", traits}}));
  keep("GPU-1", {{}, level(127, 0.5)});
  EXPECT_EQ(read_levels().at("GPU-1"), (KnownLevels{level(80, 0.5), level(127, 0.5)}));
  EXPECT_EQ(read_calibrations().at("GPU-1").ring, traits.ring);
  keep("GPU-1", {});
  EXPECT_EQ(read_levels().at("GPU-1"), (KnownLevels{level(80, 0.5), level(127, 0.5)}));
}

TEST_F(LevelStore, TheLastObservationCountsAndItsSpreadReachesTheOthers) {
  keep("GPU-1", {level(80, 0.5, 1), {}});
  keep("GPU-1", {level(83, 0.25, 2), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(83, 3, 2));
  keep("GPU-1", {level(82, 5, 3), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(82, 5, 3));
  // Of those before, the powers count, not their spreads.
  keep("GPU-1", {level(82.5, 0.25, 4), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(82.5, 2.5, 4));
}

TEST_F(LevelStore, TheLastEightAreStored) {
  keep("GPU-1", {level(200, 0.5, 1), {}});
  for (int day = 2; day < 9; ++day) keep("GPU-1", {level(80, 0.5, day), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(80, 120, 8));
  keep("GPU-1", {level(80, 0.5, 9), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(80, 0.5, 9));
}

TEST_F(LevelStore, AnObservationStoredTwiceCountsOnce) {
  for (int i = 0; i < 10; ++i) {
    keep("GPU-1", {level(80, 0.5, 1), {}});
    keep("GPU-1", {level(83, 0.5, 2), {}});
  }
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(83, 3, 2));
}

TEST_F(LevelStore, AnImpossibleLevelIsRefused) {
  for (const auto& wrong : {level(0, 1), level(-80, 1), level(80, -1), level(NAN, 1),
                            level(80, NAN), level(HUGE_VAL, 1), level(1e6, 1)}) {
    const auto kept = keep_levels({{"GPU-0", {level(80, 1), {}}}, {"GPU-1", {{}, wrong}}});
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(kept.error().message, HasSubstr("GPU-1"));
  }
  EXPECT_TRUE(read_levels().empty());
}

TEST_F(LevelStore, AFileOfVersion1HasTraitsAndNoLevels) {
  write(R"({"schema": "jouleprof.calibration/1", "devices": {"GPU-1": {
            "counter": {"refresh_seconds": 0.1}, "ring": {}, "instant": {}, "average": {}}}})");
  EXPECT_TRUE(read_levels().empty());
  EXPECT_EQ(read_calibrations().at("GPU-1").counter.refresh, Duration{100ms});
  keep("GPU-1", {level(80, 0.5), {}});
  EXPECT_EQ(read_levels().at("GPU-1").rest, level(80, 0.5));
  EXPECT_EQ(read_calibrations().at("GPU-1").counter.refresh, Duration{100ms});
  const auto text = read_file(tree_ / "jouleprof/calibration.json").value();
  EXPECT_EQ(parse_json(text, "").value()["schema"], "jouleprof.calibration/2");
}

TEST_F(LevelStore, DamagedObservationsAreLeftOut) {
  const std::string good =
      R"({"power_watts": 80, "spread_watts": 1, "observed_real_nanoseconds": 5})";
  for (const char* damaged :
       {"7", "null", "[]", "{}", R"({"power_watts": 80})",
        R"({"power_watts": 0, "spread_watts": 1, "observed_real_nanoseconds": 5})",
        R"({"power_watts": -80, "spread_watts": 1, "observed_real_nanoseconds": 5})",
        R"({"power_watts": 80, "spread_watts": -1, "observed_real_nanoseconds": 5})",
        R"({"power_watts": "80 W", "spread_watts": 1, "observed_real_nanoseconds": 5})",
        R"({"power_watts": 1e300, "spread_watts": 1, "observed_real_nanoseconds": 5})",
        R"({"power_watts": 80, "spread_watts": 1, "observed_real_nanoseconds": 9e18})",
        R"({"power_watts": 80, "spread_watts": 1, "observed_real_nanoseconds": 1.5})"}) {
    const std::string rest = std::string(R"({"devices": {"GPU-1": {"rest": )");
    write(rest + damaged + "}}}");
    EXPECT_TRUE(read_levels().empty()) << damaged;
    write(rest + "[" + good + ", " + damaged + "]}}}");
    ASSERT_EQ(read_levels().size(), 1u) << damaged;
    const KnownLevel level = read_levels().at("GPU-1").rest.value();
    EXPECT_EQ(level.power, Power::watts(80)) << damaged;
    EXPECT_EQ(level.spread, Power::watts(1)) << damaged;
    EXPECT_EQ(level.temperature_celsius, std::nullopt);
  }
}

TEST_F(LevelStore, WhatALaterVersionAddsStays) {
  write(R"({"devices": {"GPU-1": {"more": {"x": 1}}, "GPU-2": {"more": 2}}})");
  keep("GPU-1", {level(80, 0.5), {}});
  const auto text = read_file(tree_ / "jouleprof/calibration.json").value();
  const auto devices = parse_json(text, "").value()["devices"];
  EXPECT_EQ(devices["GPU-1"]["more"]["x"], 1);
  EXPECT_EQ(devices["GPU-2"]["more"], 2);
}

TEST_F(LevelStore, WritersAtOneTimeLoseNothing) {
  constexpr int kTimes = 8;
  const auto write_all = [&](const std::string& uuid) {
    for (int n = 0; n < kTimes; ++n) keep(uuid + std::to_string(n), {level(80, 0.5), {}});
  };
  std::thread other([&] { write_all("GPU-a"); });
  write_all("GPU-b");
  other.join();
  EXPECT_EQ(read_levels().size(), 2u * kTimes);
}

TEST_F(LevelStore, ReportsWhyItCannotStore) {
  tree_.write("jouleprof", "a file where the folder should be");
  const auto kept = keep_levels({{"GPU-1", {level(80, 0.5), {}}}});
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message,
              AllOf(HasSubstr("cannot store the power levels"), HasSubstr("calibration.json")));
}

class CalibrationStore : public StateFolder {
 protected:
  static GpuTraits h100() {
    GpuTraits traits;
    traits.counter.refresh = 100ms;
    traits.ring.refresh = 20ms;
    traits.ring.window = 25300us;
    traits.ring.lag = 0ms;
    traits.average.window = 1s;
    return traits;
  }
};

TEST_F(CalibrationStore, ReturnsWhatWasStored) {
  ASSERT_TRUE(keep_calibrations({{"GPU-1", h100()}}));
  const auto all = read_calibrations();
  ASSERT_EQ(all.size(), 1u);
  const auto& traits = all.at("GPU-1");
  EXPECT_EQ(traits.counter, h100().counter);
  EXPECT_EQ(traits.ring, h100().ring);  // a lag of zero is not an unknown lag
  EXPECT_EQ(traits.average, h100().average);
  EXPECT_EQ(traits.instant, model::SensorTraits{});  // what was not found stays unknown
}

TEST_F(CalibrationStore, AddsAndReplacesByUuid) {
  ASSERT_TRUE(keep_calibrations({{"GPU-1", h100()}, {"GPU-2", h100()}}));
  auto other = h100();
  other.ring.window = 100ms;
  ASSERT_TRUE(keep_calibrations({{"GPU-2", other}, {"GPU-3", other}}));
  const auto all = read_calibrations();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at("GPU-1").ring, h100().ring);
  EXPECT_EQ(all.at("GPU-2").ring, other.ring);
  EXPECT_EQ(all.at("GPU-3").ring, other.ring);
}

TEST_F(CalibrationStore, ALinkToItsFileStaysOne) {
  ASSERT_TRUE(keep_calibrations({{"GPU-1", GpuTraits{}}}));
  const auto link = tree_.root() / "jouleprof/calibration.json";
  const auto kept = tree_.root() / "settings.json";
  std::filesystem::rename(link, kept);
  std::filesystem::create_symlink(kept, link);
  ASSERT_TRUE(keep_calibrations({{"GPU-2", GpuTraits{}}}));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_calibrations().size(), 2U);
}

TEST_F(CalibrationStore, AMissingFileHasNone) { EXPECT_TRUE(read_calibrations().empty()); }

TEST_F(CalibrationStore, ADamagedFileHasNone) {
  for (const char* text : {"", "garbage", "{", "[]", "42", "{}", R"({"devices": 3})",
                           R"({"devices": ["GPU-1"]})", R"({"devices": {"GPU-1": 7}})"}) {
    write(text);
    EXPECT_TRUE(read_calibrations().empty()) << text;
  }
  // And it can be overwritten.
  ASSERT_TRUE(keep_calibrations({{"GPU-1", h100()}}));
  EXPECT_EQ(read_calibrations().size(), 1u);
}

TEST_F(CalibrationStore, AnImpossibleTraitIsUnknown) {
  write(R"({"devices": {"GPU-1": {"ring": {"refresh_seconds": -1, "window_seconds": "25 ms",
            "lag_seconds": 1e300}, "instant": [1], "average": {"window_seconds": 1}}}})");
  const auto all = read_calibrations();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.at("GPU-1").ring, model::SensorTraits{});
  EXPECT_EQ(all.at("GPU-1").instant, model::SensorTraits{});
  EXPECT_EQ(all.at("GPU-1").average.window, Duration(1s));
}

TEST_F(CalibrationStore, ReportsWhyItCannotStore) {
  tree_.write("jouleprof", "a file where the folder should be");
  const auto kept = keep_calibrations({{"GPU-1", h100()}});
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().message.find("calibration.json"), std::string::npos)
      << kept.error().message;
}

class CalibrationFile : public StateFolder {
 protected:
  CalibrationFile() {
    const model::KnownLevel rest{Power::watts(80), Power::watts(1), {}, {}};
    EXPECT_TRUE(keep_levels({{"GPU-1", {rest, {}}}, {"GPU-2", {rest, {}}}, {"GPU-3", {}}}));
    EXPECT_TRUE(keep_calibrations({{"GPU-1", {}}}));
  }
};

TEST_F(CalibrationFile, ForgetsTheNamedDevicesWhole) {
  EXPECT_EQ(forget_devices({"GPU-1", "GPU-7"}), 1U);
  EXPECT_TRUE(read_calibrations().contains("GPU-2"));
  EXPECT_FALSE(read_calibrations().contains("GPU-1"));
  EXPECT_FALSE(read_levels().contains("GPU-1"));
  EXPECT_TRUE(read_levels().contains("GPU-2"));
}

TEST_F(CalibrationFile, ForgetsAllDevices) {
  EXPECT_EQ(forget_all_devices(), 2U);
  EXPECT_TRUE(read_calibrations().empty());
  EXPECT_TRUE(read_levels().empty());
  EXPECT_EQ(forget_all_devices(), 0U);
}

// A file that cannot be read is not replaced by an empty one.
TEST_F(CalibrationFile, AFileThatCannotBeReadStays) {
  const auto path = tree_ / "jouleprof/calibration.json";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const auto forgotten = forget_all_devices();
  ASSERT_FALSE(forgotten);
  EXPECT_THAT(forgotten.error().message, HasSubstr(path.string()));
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

}  // namespace
}  // namespace jouleprof::meters::nvml
