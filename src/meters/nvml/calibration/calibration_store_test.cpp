#include <gtest/gtest.h>

#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/calibration/state_folder_fixture.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace jouleprof::meters::nvml
