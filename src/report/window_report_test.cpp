#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "report/cells.h"
#include "report/example_windows_test.h"
#include "report/render.h"
#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json windows_of(const model::Profile& profile) { return json::parse(to_json(profile))["windows"]; }

TEST(WindowText, MeasuredWindows) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/windows.txt", to_text(windowed_profile())));
}

TEST(WindowText, ASweepOfAnotherTool) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/sweep.txt", to_text(sweep_profile(70))));
}

TEST(WindowText, LongLabelsGiveWayToTheName) {
  auto profile = sweep_profile(7);
  for (auto& group : profile.windows) {
    group.labels[1].value = std::string(60, 'x');
    group.name = "squad " + group.labels[1].value + " 32";
  }
  const std::string text = to_text(profile);
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80u) << line;
  EXPECT_THAT(text, AllOf(HasSubstr("imported window"), HasSubstr("squad xxx"),
                          HasSubstr("power limit W"), Not(HasSubstr("batch size"))));
}

TEST(WindowText, OfManyNamesThoseThatTookMostAreShownAndTheRestIsSummed) {
  auto profile = windowed_profile();
  const auto small = profile.windows[0];
  profile.windows.erase(profile.windows.begin());
  for (int i = 0; i < 1000; ++i) {
    profile.windows.insert(profile.windows.begin(), small);
    profile.windows[0].name = "small " + std::to_string(i);
  }
  TextOptions options;
  options.height = 60;
  const std::string text = to_text(profile, options);
  EXPECT_THAT(text, AllOf(HasSubstr("\nepoch "), HasSubstr("\nstep "), HasSubstr("\n991 more")));
  EXPECT_LE(split(text, '\n').size(), 60u);
  // Each of the rest took 612.5 J; errors of 991: the gain's share is the same for all.
  const auto line = text.substr(text.find("991 more"));
  EXPECT_THAT(line.substr(0, line.find('\n')),
              AllOf(HasSubstr("991"), HasSubstr("612.5 J"), HasSubstr("5.0 %")));
}

TEST(WindowText, SimulatedWindowsSaySo) {
  auto profile = windowed_profile();
  for (auto& group : profile.windows) {
    group.energies[0].energy->provenance = model::Provenance::kSimulated;
  }
  const std::string text = to_text(profile);
  const auto block = text.substr(text.find("window"));
  EXPECT_THAT(block.substr(0, block.find("process,")), HasSubstr("SIMULATED"));
  EXPECT_THAT(to_text(windowed_profile()), Not(HasSubstr("SIMULATED")));
}

TEST(WindowJson, HasSumsMeansAndIntervals) {
  const json windows = windows_of(windowed_profile());
  ASSERT_EQ(windows.size(), 4u);
  const json& epoch = windows[1];
  EXPECT_EQ(epoch["name"], "epoch");
  EXPECT_EQ(epoch["imported"], false);
  EXPECT_EQ(epoch["count"], 3);
  EXPECT_EQ(epoch["total_seconds"], 79.5);
  EXPECT_EQ(epoch["mean_seconds"], 26.5);
  const json& gpu = epoch["energy"][0];
  EXPECT_EQ(gpu["device"], "gpu0");
  EXPECT_EQ(gpu["provenance"], "measured");
  EXPECT_EQ(gpu["energy_joules"], 24011.0);
  EXPECT_EQ(gpu["interval_joules"], json({22810.45, 25211.55}));
  EXPECT_EQ(gpu["mean_joules"], 8003.666667);
  EXPECT_EQ(gpu["mean_interval_joules"], json({7603.483334, 8403.85}));
  EXPECT_TRUE(gpu["reason"].is_null());
  EXPECT_EQ(epoch["energy"][3]["provenance"], "unavailable");
  EXPECT_TRUE(epoch["energy"][3]["energy_joules"].is_null());
}

TEST(WindowJson, ASumThatLacksAWindowIsNull) {
  const json gpu = windows_of(windowed_profile())[2]["energy"][0];
  EXPECT_EQ(gpu["count"], 29999);
  EXPECT_TRUE(gpu["energy_joules"].is_null());
  EXPECT_TRUE(gpu["interval_joules"].is_null());
  EXPECT_EQ(gpu["mean_joules"], 0.725033);
  EXPECT_THAT(gpu["reason"].get<std::string>(), HasSubstr("before the end of the window"));
}

TEST(WindowJson, AnImportedEnergyHasNoInterval) {
  const json document = json::parse(to_json(sweep_profile(7)));
  EXPECT_TRUE(document["duration_seconds"].is_null());
  const json& window = document["windows"][1];
  EXPECT_EQ(window["imported"], true);
  EXPECT_EQ(window["labels"][3], json({{"name", "power_limit_watts"}, {"value", "125"}}));
  const json& gpu = window["energy"][0];
  EXPECT_EQ(gpu["energy_joules"], 40750.5);
  for (const auto* key : {"interval_joules", "repeatability_joules", "mean_interval_joules",
                          "provenance", "sensor", "method"}) {
    EXPECT_TRUE(gpu[key].is_null()) << key;
  }
}

}  // namespace
}  // namespace jouleprof::report
