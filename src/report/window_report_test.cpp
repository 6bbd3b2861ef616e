#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "report/cells.h"
#include "report/example_windows_test.h"
#include "report/format/format.h"
#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json windows_of(const model::Profile& profile) { return json::parse(to_json(profile))["windows"]; }

std::string line_with(const std::string& text, std::string_view word) {
  for (const auto line : split(text, '\n')) {
    if (line.find(word) != std::string_view::npos) return std::string(line);
  }
  return "";
}

TEST(WindowText, MeasuredWindows) {
  TextOptions screen;
  screen.height = 24;
  EXPECT_TRUE(
      matches_golden(JOULEPROF_TESTDATA "/windows.txt", to_text(windowed_profile(), screen)));
}

// Three windows in each of two processes at once: 326.6 J in each of three times.
TEST(WindowReports, HaveOneMeanWhereProcessesOverlap) {
  auto profile = gpu_profile();
  auto group = window_group(profile, "step", 6, 2);
  group.energies[0].count = 6;
  group.energies[0].energy = measured(3 * 326.6, 49, 3, "nvml", "fused");
  group.energies[0].singles = measured(6 * 326.6, 98, 6, "nvml", "fused");
  for (std::size_t d = 1; d < profile.domains.size(); ++d) {
    group.energies[d].reason = "no readings";
  }
  profile.windows = {group};
  const auto j = windows_of(profile)[0]["energy"][0];
  EXPECT_NEAR(j["mean_joules"].get<double>(), 326.6, 1e-6);
  EXPECT_NEAR(j["mean_interval_joules"][1].get<double>(), 326.6 + 98.0 / 6, 1e-5);
  EXPECT_NEAR(j["energy_joules"].get<double>(), 979.8, 1e-6);  // each time once
  EXPECT_THAT(windows_to_csv(profile), HasSubstr(",6,979.800000,326.600000,"));
  EXPECT_THAT(windows_to_text(profile, {}), HasSubstr("326.6 J"));
  const std::string summary = to_text(profile);
  EXPECT_THAT(summary, HasSubstr("326.6 J"));
  EXPECT_THAT(summary, Not(HasSubstr("163.3 J")));
}

// Windows of gpu0 alone and of gpu1 alone, which was lost before the last three, or before all.
TEST(WindowReports, HaveNoMeanOverDevicesWhereAMonitorOfOneLostIt) {
  for (const std::size_t known : {1U, 0U}) {
    auto profile = gpu_profile();
    profile.domains[1].domain.kind = model::DomainKind::kGpu;
    profile.domains[1].domain.device = "gpu1";
    auto group = window_group(profile, "step", 8 + known + 3, 2);
    for (auto& energy : group.energies) energy.reason = model::kNoWindowMeasures;
    auto& first = group.energies[0];
    first.count = first.measuring = 8;
    first.reason.clear();
    first.energy = measured(8 * 100.0, 49, 3, "nvml", "fused");
    auto& lost = group.energies[1];
    lost.count = known;
    lost.measuring = known + 3;
    lost.reason = "GPU is lost";
    if (known > 0) lost.energy = measured(250, 49, 3, "nvml", "fused");
    profile.windows = {group};
    const std::string summary = to_text(profile);
    EXPECT_THAT(summary, HasSubstr("2 gpu each"));
    EXPECT_THAT(line_with(summary, "step  "), Not(HasSubstr(" J")));
    EXPECT_THAT(summary,
                HasSubstr(fmt::format("3 of {} 'step' without a figure: GPU is lost", known + 3)));
    if (known == 0) continue;
    EXPECT_THAT(windows_to_text(profile, {}), HasSubstr("3 of 4 without a figure: GPU is lost"));
  }
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

TEST(WindowText, DevicesThatAnImportedFileHasNoFigureOfAreNamedOnce) {
  auto profile = sweep_profile(7);
  const auto lines_with = [](const std::string& text, std::string_view word) {
    const auto lines = split(text, '\n');
    return std::count_if(lines.begin(), lines.end(),
                         [&](auto line) { return line.find(word) != std::string_view::npos; });
  };
  EXPECT_EQ(lines_with(windows_to_text(profile, {}), "no figure in the file"), 0);
  for (std::size_t g = 0; g < 5; ++g) {
    auto& energy = profile.windows[g].energies[0];
    energy = {};
    energy.reason = "the imported file has no energy for some of these windows";
  }
  for (const std::string& text : {to_text(profile), windows_to_text(profile, {})}) {
    EXPECT_THAT(text, HasSubstr("5 of 7 imported windows have no figure in the file"));
    EXPECT_EQ(lines_with(text, "no figure"), 1) << text;
    EXPECT_EQ(lines_with(text, "without a figure"), 0) << text;
  }
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

// A GPU that was lost in the outermost window: the mean of the others is none of all.
TEST(WindowText, OfManyNamesTheOutermostIsShownAndTheRestHasNoMeanWithoutADevice) {
  auto profile = windowed_profile();
  auto lost = profile.domains[0];
  lost.domain.id = model::DomainId{77};
  lost.domain.device = "gpu1";
  profile.domains.push_back(lost);
  const auto small = profile.windows[0];
  for (int i = 0; i < 1000; ++i) {
    profile.windows.push_back(small);
    profile.windows.back().name = "small " + std::to_string(i);
  }
  for (auto& group : profile.windows) {
    auto energy = group.energies[0];
    energy.domain = lost.domain.id;
    const bool is_long = group.name == "epoch" || group.name == "small 900";
    if (is_long) {
      energy = {};
      energy.domain = lost.domain.id;
      energy.reason = "readings end before the end of the window";
    }
    group.energies.push_back(std::move(energy));
  }
  TextOptions options;
  options.height = 60;
  options.width = 200;
  const std::string text = to_text(profile, options);
  EXPECT_THAT(text, HasSubstr("\nepoch "));
  const auto line = text.substr(text.find(" more  "));
  EXPECT_THAT(line.substr(0, line.find('\n')), Not(HasSubstr("612.5 J")));
  EXPECT_THAT(line.substr(0, line.find('\n')), Not(HasSubstr("1.22")));
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

model::Profile profile_with_quartiles() {
  auto profile = windowed_profile();
  auto& epoch = profile.windows[1];
  epoch.count = 4;
  epoch.total_time = std::chrono::seconds{100};
  epoch.time_quartiles = {std::chrono::seconds{24}, std::chrono::seconds{25},
                          std::chrono::seconds{26}};
  auto& gpu = epoch.energies[0];
  gpu.count = 4;
  gpu.quartiles = {Energy::joules(5900), Energy::joules(6000), Energy::joules(6200.5)};
  gpu.levels.rest = measured(8000, 20, 20, "", "");
  return profile;
}

TEST(WindowTable, HasMeanMedianQuartilesAndDynamicEnergy) {
  const auto profile = profile_with_quartiles();
  TextOptions options;
  options.width = 140;
  const std::string text = windows_to_text(profile, options);
  // 24011 J of four; (24011 - 8000) / 4 above rest.
  EXPECT_THAT(line_with(text, "epoch"),
              AllOf(HasSubstr("gpu0"), HasSubstr("25.00 s"), HasSubstr("6.003 kJ"),
                    HasSubstr("6.000 kJ"), HasSubstr("5.900 kJ to 6.2"), HasSubstr("4.003 kJ"),
                    HasSubstr("24.01 kJ"), HasSubstr("measured")));
  // A sum that lacks a window is no sum; why is said.
  EXPECT_THAT(line_with(text, "step"), AllOf(HasSubstr("725.0 mJ"), Not(HasSubstr("kJ"))));
  EXPECT_THAT(text, HasSubstr("1 of 30000 without a figure: readings of"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const std::string sweep = windows_to_text(sweep_profile(7), options);
  EXPECT_THAT(line_with(sweep, "40.00 kJ"), AllOf(HasSubstr("squad"), HasSubstr("imported")));
}

TEST(WindowTable, AsJsonAndCsv) {
  const auto profile = profile_with_quartiles();
  const json document = json::parse(windows_to_json(profile));
  EXPECT_EQ(document["schema"], "jouleprof.windows/1");
  EXPECT_EQ(document["windows"], windows_of(profile));
  const json& epoch = document["windows"][1];
  EXPECT_EQ(epoch["quartiles_seconds"], json({24.0, 25.0, 26.0}));
  EXPECT_EQ(epoch["energy"][0]["quartiles_joules"], json({5900.0, 6000.0, 6200.5}));
  EXPECT_TRUE(epoch["energy"][1]["quartiles_joules"].is_null());
  EXPECT_TRUE(document["windows"][0]["quartiles_seconds"].is_null());

  const std::string csv = windows_to_csv(profile);
  const auto lines = split(csv, '\n');
  const auto commas = [](std::string_view line) {
    return std::count(line.begin(), line.end(), ',');
  };
  for (const auto line : lines) {
    if (line.empty()) continue;
    EXPECT_EQ(commas(line), commas(lines[0])) << line;
  }
  EXPECT_EQ(line_with(csv, "epoch,"),
            "epoch,,false,4,100.000000000,25.000000000,24.000000000,25.000000000,26.000000000,gpu0,"
            "gpu,4,24011.000000,6002.750000,5702.612500,6302.887500,5900.000000,6000.000000,"
            "6200.500000,8000.000000,,,measured,,22810.450000,25211.550000,48.022000,7980.000000,"
            "8020.000000,,,,,,nvmlDeviceGetTotalEnergyConsumption + nvmlDeviceGetSamples,fused");
  // Unavailable is an empty cell with a reason, not 0.
  EXPECT_THAT(csv, HasSubstr("dram-0,dram,0,,,,,,,,,,,unavailable,no readings of its sensor,"));
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

TEST(WindowJson, WindowsThatDoNotMeasureADeviceAreNotMissingInItsSum) {
  auto profile = windowed_profile();
  --profile.windows[1].energies[0].count;  // of three epochs, as of ranks with a GPU each
  const auto epoch = windows_of(profile)[1]["energy"][0];
  EXPECT_EQ(epoch["count"], 2);
  EXPECT_EQ(epoch["energy_joules"], 24'011.0);
  EXPECT_EQ(epoch["mean_joules"], 12'005.5);
  EXPECT_TRUE(epoch["reason"].is_null());
  const std::string table = windows_to_text(profile, {});
  EXPECT_THAT(table, AllOf(HasSubstr(" 2 of 3 "), HasSubstr("24.01 kJ")));
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
