#include <fmt/format.h>
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

constexpr const char* kTraining =
    "max_watt,tokens_per_sec,total_power_draw,energy_per_token,temperature,gpu_utilization,"
    "memory_utilization,loss,timestamp\n"
    "300,20,280,14,60,99,50,2.5,2025-01-01 10:00:00\n"
    "300,20,280,14,60,99,50,2.4,2025-01-01 10:00:01\n"
    "300,40,320,8,60,99,50,2.3,2025-01-01 10:00:02\n"
    "300,10,300,30,60,99,50,2.2,2025-01-01 10:05:00\n"
    "300,10,300,30,60,99,50,2.1,2025-01-01 10:05:01\n"
    "200,8,200,25,55,99,50,2.0,2025-01-01 10:05:02\n";

TEST(GpuTune, EachRowIsARepetitionOfOneToken) {
  const auto recording = import(kTraining);
  ASSERT_TRUE(recording) << recording.error().message;
  const auto& windows = recording->imported_windows;
  ASSERT_EQ(windows.size(), 6U);
  EXPECT_NEAR(seconds(windows[0].duration), 1.0 / 20, 1e-9);
  EXPECT_NEAR(joules(windows[0]), 14, 1e-6);
  EXPECT_NEAR(joules(windows[2]), 8, 1e-6);
  EXPECT_NEAR(joules(windows[5]), 25, 1e-6);
  EXPECT_EQ(windows[5].labels.front().value, "200");
  EXPECT_EQ(windows[3].begin, HostTime{std::chrono::minutes{5}});
  EXPECT_EQ(recording->run.source, "import:gpu-tune");
}

TEST(GpuTune, ReadsTheVariantOfInferenceAndSecondsSince1970) {
  const auto recording = import(
      "timestamp,max_watt,total_power_draw,tokens_per_sec\n"
      "1735689600.0,250,240,12\n1735689602.0,250,240,12\n1735689604.0,250,260,0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 2U);
  EXPECT_NEAR(joules(recording->imported_windows[0]), 20, 1e-6);
  EXPECT_THAT(recording->warnings.front().text, HasSubstr("1 row without a token left out"));
}

// A hiccup of the throughput, which gpu-tune writes as it is.
TEST(GpuTune, ARowFarFromTheOthersOfItsLimitIsLeftOutAndNamed) {
  std::string text = "max_watt,tokens_per_sec,total_power_draw\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("200,{},190\n", i == 17 ? 48.0 : 16 + 0.1 * (i % 7));
    text += fmt::format("175,{},170\n", 14.5 + 0.1 * (i % 5));
  }
  const auto recording = import(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->imported_windows.size(), 79U);
  EXPECT_THAT(recording->warnings.front().text,
              HasSubstr("1 of 40 rows at 200 W left out, far from the others: line 36 (48 "
                        "tokens/s, 190 W)"));
}

TEST(GpuTune, RefusesASimulatedGpu) {
  const auto recording =
      import("max_watt,tokens_per_sec,total_power_draw,provenance\n200,10,190,simulated\n");
  ASSERT_FALSE(recording);
  EXPECT_THAT(recording.error().message, HasSubstr("provenance is 'simulated'"));
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
