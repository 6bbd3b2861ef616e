#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/importer.h"

namespace jouleprof::importers {
namespace {

using ::testing::HasSubstr;

Result<model::Recording> import(std::string text) {
  const std::vector<SourceText> sources{{"stats.csv", std::move(text)}};
  return import_texts(sources);
}

double joules(const model::ImportedWindow& window) {
  return window.energies.front().energy.joules();
}

// Two segments of 300 W: the pause between them, in which a model is loaded, does not count.
constexpr const char* kTraining =
    "max_watt,tokens_per_sec,total_power_draw,energy_per_token,temperature,gpu_utilization,"
    "memory_utilization,loss,timestamp\n"
    "300,20,280,14,60,99,50,2.5,2025-01-01 10:00:00\n"
    "300,20,280,14,60,99,50,2.4,2025-01-01 10:00:01\n"
    "300,40,320,8,60,99,50,2.3,2025-01-01 10:00:02\n"
    "300,10,300,30,60,99,50,2.2,2025-01-01 10:05:00\n"
    "300,10,300,30,60,99,50,2.1,2025-01-01 10:05:01\n"
    "200,8,200,25,55,99,50,2.0,2025-01-01 10:05:02\n";

TEST(GpuTune, EachSegmentIsAWindowOfOneToken) {
  const auto recording = import(kTraining);
  ASSERT_TRUE(recording) << recording.error().message;
  const auto& windows = recording->imported_windows;
  ASSERT_EQ(windows.size(), 3U);
  // 20 + 30 tokens and 280 + 300 J in 2 s.
  EXPECT_NEAR(seconds(windows[0].duration), 2.0 / 50, 1e-9);
  EXPECT_NEAR(joules(windows[0]), 580.0 / 50, 1e-6);
  EXPECT_NEAR(seconds(windows[1].duration), 0.1, 1e-9);
  EXPECT_NEAR(joules(windows[1]), 30, 1e-6);
  EXPECT_NEAR(joules(windows[2]), 25, 1e-6);  // a single row
  EXPECT_EQ(windows[2].labels.front().value, "200");
  EXPECT_EQ(recording->run.source, "import:gpu-tune");
}

TEST(GpuTune, ReadsTheVariantOfInferenceAndSecondsSince1970) {
  const auto recording = import(
      "timestamp,max_watt,total_power_draw,tokens_per_sec\n"
      "1735689600.0,250,240,12\n1735689602.0,250,240,12\n1735689604.0,250,260,0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 1U);
  EXPECT_NEAR(joules(recording->imported_windows[0]), (480 + 500) / 36.0, 1e-6);
}

TEST(GpuTune, WithoutTimesAllRowsCountAlike) {
  const auto recording =
      import("max_watt,tokens_per_sec,total_power_draw\n250,10,200\n250,30,240\n200,0,100\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 1U);  // none of 200 W made a token
  EXPECT_NEAR(joules(recording->imported_windows[0]), 440.0 / 40, 1e-6);
  EXPECT_THAT(recording->warnings.front().text, HasSubstr("1 segments without a token"));
}

TEST(GpuTune, RefusesWhatIsNoNumber) {
  const std::string header = "max_watt,tokens_per_sec,total_power_draw\n";
  EXPECT_THAT(import(header + "250,fast,200\n").error().message,
              HasSubstr("line 2: tokens_per_sec is 'fast'"));
  EXPECT_THAT(import(header + "250,10,-1\n").error().message,
              HasSubstr("total_power_draw is '-1'"));
  EXPECT_THAT(import(header).error().message, HasSubstr("no sample under it"));
  EXPECT_THAT(import("max_watt,tokens_per_sec\n250,10\n").error().message,
              HasSubstr("total_power_draw"));
}

TEST(ZeusProfile, EachLimitIsAWindow) {
  const auto recording = import(
      R"({"measurements": [{"power_limit": 250, "energy": 6065.03, "time": 26.67},
                           {"power_limit": 150, "energy": 4830.3, "time": 32.41}]})");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 2U);
  EXPECT_NEAR(joules(recording->imported_windows[0]), 6065.03, 1e-6);
  EXPECT_NEAR(seconds(recording->imported_windows[1].duration), 32.41, 1e-9);
  EXPECT_EQ(recording->imported_windows[1].labels.front().value, "150");
  EXPECT_FALSE(import(R"({"measurements": [{"power_limit": 250, "energy": 1}]})"));
  EXPECT_FALSE(import(R"({"measurements": [{"power_limit": 250, "energy": -1, "time": 1}]})"));
}

}  // namespace
}  // namespace jouleprof::importers
