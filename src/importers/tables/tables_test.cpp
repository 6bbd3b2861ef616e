#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/import.h"
#include "importers/importers_fixture.h"

namespace jouleprof::importers {
namespace {

using ::testing::HasSubstr;

const std::string kHeader =
    "timestamp,project_name,run_id,duration,emissions,cpu_power,cpu_energy,gpu_energy,ram_energy,"
    "energy_consumed,country_name\n";

TEST(CodeCarbon, TheLastRowOfARunIsTheRun) {
  const auto recording = import_text(
      kHeader +
      "2026-04-11T08:00:10,train,A,10.0,0.1,7.5,0.001,0.002,0.0005,0.0035,\"Korea, Republic of\"\n"
      "2026-04-11T08:00:20,train,A,20.0,0.2,7.5,0.002,0.004,0.001,0.007,France\n"
      "2026-04-11T08:01:00,eval,B,5.0,0.1,7.5,0.001,0,0.001,0.002,France\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:codecarbon");
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  const auto& train = recording->imported_windows[0];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.begin, HostTime{});
  EXPECT_EQ(train.duration, Duration{std::chrono::seconds{20}});
  ASSERT_EQ(train.energies.size(), 3u);
  EXPECT_EQ(train.energies[1].energy, Energy::joules(0.004 * 3.6e6));
  EXPECT_EQ(recording->imported_windows[1].energies.size(), 2u);  // no GPU
  EXPECT_EQ(recording->imported_windows[1].begin, HostTime{std::chrono::seconds{55}});
  EXPECT_TRUE(has_warning(*recording, "1 value of gpu_energy that is exactly 0"));
  EXPECT_TRUE(has_warning(*recording, "1 earlier row of the same run"));
}

// A newer CodeCarbon wrote on into the file, or files were joined.
TEST(CodeCarbon, AnotherHeaderIsOfTheRowsUnderIt) {
  const std::string head = "timestamp,run_id,duration,emissions,energy_consumed,cpu_energy";
  const auto recording = import_text(head + "\n2026-08-17T22:00:10,a,10,0,0.001,0.001\n" + head +
                                     "\n2026-08-17T22:01:10,b,10,0,0.001,0.001\n" + head +
                                     ",pue\n2026-08-17T22:02:10,c,10,0,0.001,0.001,2\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 3u);
  for (const auto& window : recording->imported_windows) {
    const bool is_last = &window == &recording->imported_windows.back();
    EXPECT_EQ(window.energies.at(0).energy, Energy::joules(is_last ? 1800 : 3600));
  }
  EXPECT_FALSE(has_warning(*recording, "left out"));
}

TEST(CodeCarbon, ATableThatASpreadsheetSavedWithDecimalCommasIsRead) {
  const auto recording = import_text(
      "timestamp;run_id;duration;emissions;energy_consumed;cpu_energy\n"
      "2026-08-17T22:00:10;a;10,5;0,25;0,0015;0,0015\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 1u);
  EXPECT_EQ(recording->imported_windows[0].energies.at(0).energy, Energy::joules(5400));
}

TEST(CodeCarbon, TheEnergyOfARunNeverFalls) {
  const std::string first =
                        "2026-04-11T08:00:10,train,A,10.0,0.1,7.5,0.001,0.002,0.0005,0.0035,X\n",
                    second = "2026-04-11T08:00:20,train,A,20.0,0.2,7.5,0.002,0.004,0.001,0.007,X\n",
                    lower = "2026-04-11T08:10:00,train,A,5.0,0.1,7.5,0.001,0.001,0.0005,0.0025,X\n";
  const auto recording = import_text(kHeader + second + first);
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 1u);
  EXPECT_EQ(recording->imported_windows[0].duration, Duration{std::chrono::seconds{20}});
  EXPECT_THAT(import_error(kHeader + second + lower),
              HasSubstr("line 3: it has less energy than line 2 of the same run_id"));
}

// Stamps are whole seconds: of tasks one after the other, one seems to begin within the one before.
TEST(CodeCarbon, TasksInOneSecondDoNotOverlap) {
  const auto recording = import_text(
      "task_name,timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed\n"
      "load,2026-04-11T08:00:10,p,A,10.0,0.1,0.001,0.001\n"
      "fit,2026-04-11T08:00:10,p,A,0.5,0.1,0.002,0.002\n"
      "test,2026-04-11T08:00:20,p,A,3.0,0.1,0.002,0.002\n");
  ASSERT_TRUE(recording) << recording.error().message;
  const auto& windows = recording->imported_windows;
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(*windows[1].begin, *windows[0].begin + windows[0].duration);
  EXPECT_EQ(*windows[2].begin, HostTime{std::chrono::seconds{17}});
}

TEST(CodeCarbon, AnEnergyThatIsNotTheSumOfItsPartsIsNamed) {
  const std::string row = "2026-04-11T08:00:10,train,A,10.0,0.1,7.5,0.001,0.002,0.0005,";
  EXPECT_FALSE(has_warning(*import_text(kHeader + row + "0.0035,France\n"), "is not the sum"));
  EXPECT_TRUE(has_warning(*import_text(kHeader + row + "0.035,France\n"),
                          "energy_consumed of 1 row is not the sum of the energies of GPU, CPU and "
                          "RAM (line 2: 1.26e+05 J and 1.26e+04 J)"));
}

TEST(CodeCarbon, AnEnergyBeyondItsGpusIsNamed) {
  const auto import_row = [](const std::string& kilowatt_hours, const std::string& gpus) {
    return import_text(
        "timestamp,run_id,duration,emissions,energy_consumed,gpu_energy,gpu_count,gpu_model\n"
        "2026-08-17T22:00:10,a,100,0," +
        kilowatt_hours + "," + kilowatt_hours + "," + gpus + "\n");
  };
  // 300 W each, and 3 kW.
  EXPECT_FALSE(has_warning(*import_row("0.01667", "2,2 x NVIDIA H100"), "can draw"));
  EXPECT_TRUE(has_warning(*import_row("0.1667", "2,"),
                          "the mean power of each GPU in 1 row is more than it can draw (line 2: "
                          "3001 W, above what any gpu draws for long (1500 W))"));
  EXPECT_TRUE(has_warning(*import_row("0.01667", "2,2 x Tesla T4"),
                          "300.1 W, above the greatest limit of 2 x Tesla T4, 70 W"));
  // Which of them drew it is unknown, and so is how many there are.
  EXPECT_FALSE(has_warning(*import_row("0.01667", "2,\"1 x Tesla T4, 1 x A100\""), "can draw"));
  EXPECT_FALSE(has_warning(*import_row("0.1667", ","), "can draw"));
}

TEST(CodeCarbon, TasksAreWindows) {
  const auto recording = import_text(
      "task_name,timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed\n"
      "load,2026-04-11T08:00:10,p,A,10.0,0.1,0.001,0.001\n"
      "fit,2026-04-11T08:00:30,p,A,20.0,0.1,0.002,0.002\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  EXPECT_EQ(recording->imported_windows[1].name, "fit");
}

// As version 1 wrote it.
TEST(CodeCarbon, EnergyOfAllDevicesAlone) {
  const auto recording = import_text(
      "timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name\n"
      "2021-04-11T08:00:10,A,train,10.0,0.1,0.001,France\n"
      "2021-04-11T08:01:10,B,eval,10.0,0.1,0.003,France\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->domains.size(), 1u);
  EXPECT_EQ(recording->domains[0].kind, model::DomainKind::kPlatform);
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  EXPECT_EQ(recording->imported_windows[1].energies.at(0).energy, Energy::joules(0.003 * 3.6e6));
  EXPECT_TRUE(has_warning(*recording, "2 of 2 rows have no energy by device"));
}

// Devices of one row and the whole of another do not add up.
TEST(CodeCarbon, ARowWithoutDevicesMakesAllWhole) {
  const auto recording =
      import_text(kHeader +
                  "2026-04-11T08:00:10,train,A,10.0,0.1,7.5,0.001,0.002,0.0005,0.0035,France\n"
                  "2026-04-11T08:01:00,eval,B,5.0,0.1,,,,,0.002,France\n");
  ASSERT_TRUE(recording) << recording.error().message;
  for (const auto& window : recording->imported_windows) {
    ASSERT_EQ(window.energies.size(), 1u);
    EXPECT_EQ(recording->domains[static_cast<std::size_t>(window.energies[0].domain)].kind,
              model::DomainKind::kPlatform);
  }
  EXPECT_EQ(recording->imported_windows[0].energies[0].energy, Energy::joules(0.0035 * 3.6e6));
}

TEST(CodeCarbon, BadFiles) {
  EXPECT_THAT(import_error(kHeader), HasSubstr("no run"));
  EXPECT_THAT(import_error(kHeader + "now,train,A,1,0,0,0,0,0,0,F\n"),
              HasSubstr("timestamp is 'now', no time"));
  EXPECT_THAT(import_error(kHeader + "2026-04-11T08:00:10,train,A,1,0,0,many,0,0,0,F\n"),
              HasSubstr("cpu_energy is 'many', no energy"));
}

using std::chrono::milliseconds;

TEST(Gpupp, ExecutionsOfLayersAreWindows) {
  const auto recording = import_text(
      "layer_name,exec_id,start_time,end_time,duration_ms,start_power_w,end_power_w,avg_power_w,"
      "energy_j\n"
      "encoder.0,0,1763508239.5,1763508239.502,2.0,100,120,110,0.22\n"
      "encoder.1,1,1763508239.502,1763508239.503,1.0,120,120,120,0.12\n"
      "encoder.0,2,1763508239.503,1763508239.505,2.0,100,120,2775.5,5.5\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:gpupp");
  ASSERT_EQ(recording->imported_windows.size(), 3u);
  EXPECT_EQ(recording->imported_windows[1].begin, HostTime{milliseconds{2}});
  EXPECT_EQ(recording->imported_windows[2].energies[0].energy, Energy::joules(5.5));
  EXPECT_TRUE(has_warning(*recording, "1 of 3 windows: the mean power of gpu0 is above"));
  EXPECT_TRUE(has_warning(*recording, "1 of 3 rows: the power at the begin is that at the end"));
}

TEST(Gpupp, TablesOfKernelsHaveNoTimes) {
  for (const std::string text :
       {"kernel_name,exec_id,duration_ms,avg_power_w,energy_j\naten::mm,0,1.5,200,0.3\n",
        "kernel_name,total_duration_ms,avg_power_w,total_energy_j\naten::mm,1.5,200,0.3\n"}) {
    const auto recording = import_text(text);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_FALSE(recording->imported_windows[0].begin);
    EXPECT_EQ(recording->imported_windows[0].energies[0].energy, Energy::joules(0.3));
  }
  const std::string head = "kernel_name,exec_id,duration_ms,avg_power_w,energy_j\n";
  const auto too_much = import_text(head + "aten::mm,0,1,1775,1.775\n");
  EXPECT_TRUE(
      has_warning(*too_much, "1 of 1 windows: the mean power of gpu0 is above what any gpu"));
  const auto large = import_text(head + "aten::mm,0,1,1400,1.4\n");
  EXPECT_FALSE(has_warning(*large, "the mean power of gpu0 is above"));
  EXPECT_THAT(import_error("kernel_name,energy_j\na,1\n"), HasSubstr("line 2: it has no duration"));
  EXPECT_THAT(import_error("kernel_name,duration_ms,energy_j\na,1,x\n"),
              HasSubstr("energy_j is 'x', no energy"));
}

TEST(GpuppPeerFiles, AreFlagged) {
  JOULEPROF_PEER_FILE(kernels, "gpupp/kernel_demo_profile.csv");
  JOULEPROF_PEER_FILE(layers, "gpupp/layer_demo_profile.csv");
  auto recording = import_files({kernels});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "the mean power of gpu0 is above"));
  recording = import_files({layers});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "the power at the begin is that at the end"));
}

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
      "1735689600.0,250,240,12\n1735689602.0,250,240,12\n1735689604.0,250,260,0\n"
      "1735689604.0,250,260,0\n");  // counts once
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
