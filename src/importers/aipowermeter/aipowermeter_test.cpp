#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/importers_fixture.h"

namespace jouleprof::importers {
namespace {

using ::testing::HasSubstr;

// A record of the newer schema at second `s` with one power each.
std::string record(const std::string& s, const std::string& cpu, const std::string& gpu = "") {
  return R"({"date": "2026-11-21 03:00:)" + s + R"(", "metrics": {"cpu": {)" + cpu + "}" +
         (gpu.empty() ? "" : R"(, "gpu": {)" + gpu + "}") + "}}\n";
}

const model::Domain* domain(const model::Recording& recording, std::string_view device) {
  for (const auto& d : recording.domains) {
    if (d.device == device) return &d;
  }
  return nullptr;
}

TEST(AiPowerMeter, WhatHasNoEnergyContainsNothing) {
  const std::string one = R"("per_gpu_power_draw": {"0": 30})";
  const auto recording = import_text(record("00", "", R"("nvidia_power": 30)") +
                                     record("01", "", one) + record("02", "", one));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_FALSE(domain(*recording, "gpu0")->parent);  // else no total would have it
}

TEST(AiPowerMeter, PowersThatAreTextsAreReadOrNamed) {
  const std::string cpu = R"("intel_power": "40.5", "total_dram_power": "n/a")";
  const auto recording = import_text(record("00", cpu) + record("02", cpu));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 81, 1e-9);
  EXPECT_TRUE(has_warning(*recording, "total_dram_power as a text (2 records)"));
}

TEST(AiPowerMeter, ReadsTheNewerSchema) {
  const std::string gpu =
      R"("nvidia_draw_absolute": 100.0, "per_gpu_power_draw": {"0": 30.5, "1": 69.5},
         "per_gpu_attributable_mem_use": {"0": {}, "1": {"77": 1048576}},
         "per_gpu_per_pid_utilization_absolute": {"0": {"5": 0.25}, "1": {"77": 0.5}},
         "per_gpu_attributable_power": {"1": 69.5, "all": 69.5})";
  std::string flat = gpu;
  std::erase(flat, '\n');
  const std::string cpu =
      R"("per_process_mem_use_abs": {"77": 4096}, "intel_power": 40.5, "psys_power": 60,
         "uncore_power": [0.5], "total_cpu_power": 30, "total_dram_power": 5)";
  std::string flat_cpu = cpu;
  std::erase(flat_cpu, '\n');
  const auto recording =
      import_text(record("00", flat_cpu, flat) + record("02.500000", flat_cpu, flat));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:aipowermeter");
  EXPECT_EQ(recording->run.work_end, HostTime{std::chrono::milliseconds{2500}});
  EXPECT_EQ(recording->clock_points.size(), 2u);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 40.5 * 2.5, 1e-9);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "uncore")), 1.25, 1e-9);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 69.5 * 2.5, 1e-9);
  EXPECT_EQ(domain(*recording, "gpus"), nullptr);  // nothing is counted twice
  const auto* psys = domain(*recording, "psys");
  const auto* cpus = domain(*recording, "cpu");
  ASSERT_TRUE(psys && cpus);
  EXPECT_EQ(cpus->parent, psys->id);
  EXPECT_EQ(domain(*recording, "dram")->parent, psys->id);
  EXPECT_EQ(domain(*recording, "cores")->parent, cpus->id);

  ASSERT_EQ(recording->processes.size(), 2u);
  EXPECT_EQ(recording->processes[0].pid, 77);
  EXPECT_TRUE(recording->processes[0].in_tree);
  EXPECT_EQ(recording->processes[1].pid, 5);
  EXPECT_FALSE(recording->processes[1].in_tree);
  const auto& uses = recording->process_readings.gpu_processes;
  ASSERT_EQ(uses.size(), 4u);
  EXPECT_EQ(uses[1].process, recording->processes[0].id);
  EXPECT_EQ(uses[1].compute_utilisation, 0.5);
  EXPECT_EQ(uses[1].memory_bytes, 1048576u);
  EXPECT_EQ(uses[0].memory_bytes, std::nullopt);
}

TEST(AiPowerMeter, ReadsTheOlderSchema) {
  const std::string cpu = R"("mem_use_abs": {"9": 1}, "intel_power": 10, "psys_power": -1)";
  const std::string gpu = R"("nvidia_draw_absolute": 88.25)";
  const auto recording = import_text(record("00", cpu, gpu) + record("04", cpu, gpu));
  ASSERT_TRUE(recording);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpus")), 353, 1e-9);
  EXPECT_EQ(domain(*recording, "psys"), nullptr);
  EXPECT_EQ(domain(*recording, "cpu")->parent, std::nullopt);
  EXPECT_TRUE(recording->processes.at(0).in_tree);
}

TEST(AiPowerMeter, NothingIsDrawnBetweenSegments) {
  const std::string cpu = R"("intel_power": 10)";
  const auto recording =
      import_text(record("00", cpu) + record("01", cpu) + "\"END OF RECORDING SEGMENT\"\n" +
                  record("03", cpu) + record("04", cpu) + "\"END OF RECORDING SEGMENT\"\n");
  ASSERT_TRUE(recording);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 20, 1e-6);
  EXPECT_TRUE(has_warning(*recording, "paused 1 time: 2 s"));
  EXPECT_TRUE(recording->run.complete);
}

TEST(AiPowerMeter, SeveralFilesAreSegments) {
  const std::string cpu = R"("intel_power": 10)";
  const auto recording = import_texts(std::vector<SourceText>{
      {"a", record("00", cpu) + record("01", cpu)}, {"b", record("02", cpu) + record("03", cpu)}});
  ASSERT_TRUE(recording);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 20, 1e-6);
}

// As of row logs: a file that was appended to itself, or given twice, has its energy once.
TEST(AiPowerMeter, ARecordThatStandsInTheLogTwiceCountsOnce) {
  const std::string gpu = R"("per_gpu_power_draw": {"0": 100})";
  const std::string log = record("00", "", gpu) + record("01", "", gpu) + record("02", "", gpu);
  for (const auto& recording :
       {import_text(log + log), import_text(log + record("01", "", gpu) + record("02", "", gpu)),
        import_texts(std::vector<SourceText>{{"a", log}, {"b", log}})}) {
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 200, 1e-9);
    EXPECT_TRUE(has_warning(*recording, "left out that stand in the log twice"));
  }
}

TEST(AiPowerMeter, AMissingValueIsAbsent) {
  const auto recording =
      import_text(record("00", R"("intel_power": 10, "psys_power": -1)") +
                  record("01", R"("intel_power": null)") + record("02", R"("intel_power": -1)") +
                  record("03", R"("intel_power": 10)"));
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->readings.powers.size(), 2u);
  EXPECT_EQ(recording->readings.failures.size(), 2u);
  EXPECT_EQ(recording->domains.size(), 1u);
}

TEST(AiPowerMeter, AnInterruptedRunKeepsItsWholeRecords) {
  const std::string cpu = R"("intel_power": 10)";
  const std::string whole = record("00", cpu) + record("01", cpu);
  const auto recording = import_text(whole + record("02", cpu).substr(0, 50));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->readings.powers.size(), 2u);
  EXPECT_TRUE(recording->run.complete);
  EXPECT_TRUE(has_warning(*recording, "in, line 3"));
  // A whole record is whole without a line end, too.
  const auto all = import_text(whole.substr(0, whole.size() - 1));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->run.complete);
  EXPECT_EQ(all->readings.powers.size(), 2u);
}

TEST(AiPowerMeter, BadRecordsAreNamedByLine) {
  const std::string good = record("00", R"("intel_power": 10)");
  const std::string second = record("01", R"("intel_power": 10)");
  const auto recording = import_text(good + "garbage\n" + second);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording,
                          "1 row left out that cannot be right; the first is line 2: "
                          "'garbage' is not"));
  EXPECT_THAT(import_error("garbage\ngarbage\n" + good, {.format = "aipowermeter"}),
              HasSubstr("in, line 1: 'garbage' is not"));
  EXPECT_TRUE(
      has_warning(*import_text(good + "{\"metrics\": {}}\n" + second), "line 2: not a record"));
  EXPECT_THAT(import_error("{\"date\": \"yesterday\", \"metrics\": {}}\n"), HasSubstr("line 1"));
  EXPECT_THAT(import_error("\"END OF RECORDING SEGMENT\"\n"), HasSubstr("no whole record"));
  EXPECT_THAT(import_error(good), HasSubstr("fewer than two"));
}

std::string record_of(int second, double watts, const std::string& processes) {
  return record(
      fmt::format("{:02}", second),
      fmt::format(R"("intel_power": {}, "per_process_cpu_power": {{{}}})", watts, processes));
}

double joules_of(const model::Recording& recording, std::string_view window) {
  for (const auto& w : recording.imported_windows) {
    if (w.name == window) return w.energies.at(0).energy.joules();
  }
  return -1;
}

// A record without a process says that it drew nothing: the intervals on both sides count half.
TEST(AiPowerMeter, ProcessesThatComeAndGoKeepTheirHalfIntervals) {
  const auto recording = import_text(
      record_of(0, 40, R"("7": 10)") + record_of(1, 40, R"("7": 10, "8": 20)") +
      record_of(2, 40, R"("8": 20)") + record_of(3, 40, R"("7": 6)") + record_of(4, 40, ""));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules_of(*recording, "process 7"), 10 + 5 + 3 + 3, 1e-9);
  EXPECT_NEAR(joules_of(*recording, "process 8"), 10 + 20 + 10, 1e-9);
}

TEST(AiPowerMeter, RecordsOfTwoMachinesInOneFileAreRefused) {
  std::string text;
  for (int s = 0; s < 40; ++s) {
    text += fmt::format(
        R"({{"date": "2026-11-21 03:00:{:02}.{}", "metrics": {{"cpu": {{"intel_power": {}}}}}}})",
        s / 2, s % 2 == 0 ? "000" : "300", s % 2 == 0 ? 40 + s % 3 : 90 + s % 3);
    text += '\n';
  }
  EXPECT_THAT(import_error(text), HasSubstr("the rows of cpu contradict each other"));
}

// The known answers were summed over time stamps held as doubles, which are 240 ns apart.
constexpr double kStampRounding = 1e-5;

TEST(AiPowerMeterPeers, ExampleData) {
  JOULEPROF_PEER_FILE(file, "aipowermeter/example_data.power_metrics.json");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin,
            std::chrono::microseconds{17317741});
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 1141.261559, kStampRounding);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "dram")), 200.165402, kStampRounding);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 323.783011, kStampRounding);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 1199.646679, kStampRounding);
  EXPECT_EQ(domain(*recording, "psys"), nullptr);
}

TEST(AiPowerMeterPeers, MeasurePower) {
  JOULEPROF_PEER_FILE(file, "aipowermeter/measure_power.power_metrics.json");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin,
            std::chrono::microseconds{24127467});
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 562.127268, kStampRounding);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cores")), 493.494523, kStampRounding);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "psys")), 884.956594, kStampRounding);
}

TEST(AiPowerMeter, ReadsThePresentSchema) {
  const auto each = import_text(
      record("00", "", R"("nvidia_power": 90, "per_gpu_nvidia_power": {"0": 30, "1": 60})") +
      record("10", "", R"("nvidia_power": 90, "per_gpu_nvidia_power": {"0": 30, "1": 60})"));
  ASSERT_TRUE(each) << each.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*each, "gpu0")), 300, 1e-9);
  EXPECT_NEAR(trapezoid(powers_of(*each, "gpu1")), 600, 1e-9);
  EXPECT_EQ(domain(*each, "gpus"), nullptr);
  const auto all = import_text(record("00", "", R"("nvidia_power": 90)") +
                               record("10", "", R"("nvidia_power": 90)"));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*all, "gpus")), 900, 1e-9);
}

TEST(AiPowerMeter, WhatWasChargedToProcessesAreWindows) {
  const std::string cpu =
      R"("intel_power": 40, "total_cpu_power": 30, "total_dram_power": 5, "wattage_of_fans": 2,)"
      R"("cpu_uses": {"77": 0.5, "78": 0.25}, "mem_use_abs": {"77": 4096, "78": 100},)"
      R"("per_process_cpu_power": {"77": 15, "78": 7.5}, "per_process_dram_power": {"77": 2})";
  const std::string gpu =
      R"("nvidia_power": 90, "per_gpu_nvidia_power": {"0": 90}, "per_gpu_attributable_power": {"0": 45, "all": 45})";
  const auto recording = import_text(record("00", cpu, gpu) + record("10", cpu, gpu) +
                                     "\"END OF RECORDING SEGMENT\"\n" + record("40", cpu, gpu) +
                                     record("50", cpu, gpu));
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 3u);
  const auto& first = recording->imported_windows[0];
  EXPECT_EQ(first.name, "process 77");
  ASSERT_EQ(first.energies.size(), 2u);
  EXPECT_EQ(first.energies[1].domain, domain(*recording, "cores")->id);
  EXPECT_EQ(first.energies[1].energy, Energy::joules(300));  // 20 s: the pause does not count
  EXPECT_EQ(first.energies[0].energy, Energy::joules(40));
  EXPECT_EQ(first.labels[0].value, "0.5000");
  EXPECT_EQ(first.labels[1].value, "4096");
  EXPECT_EQ(recording->imported_windows[2].name, "processes of the experiment");
  EXPECT_EQ(recording->imported_windows[2].energies[0].energy, Energy::joules(900));
  EXPECT_TRUE(has_warning(*recording, "1 figure left out: wattage_of_fans (4 records)"));
}

TEST(AiPowerMeter, KeepsTheProvenanceOfItsOwnExports) {
  const std::string line =
      R"({"date": "2026-11-21 03:00:0@", "provenance": {"cpu": "estimated", "gpu": "measured"}, "metrics": )"
      R"({"cpu": {"intel_power": 40}, "gpu": {"nvidia_draw_absolute": 90}}})";
  std::string text;
  for (const char second : {'0', '1'}) {
    text += line + "\n";
    text[text.rfind('@')] = second;
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->sensors[0].provenance, model::Provenance::kEstimated);
  EXPECT_EQ(recording->sensors[1].provenance, model::Provenance::kMeasured);
}

std::string seconds_of(std::initializer_list<const char*> all) {
  std::string text;
  for (const char* s : all) text += record(s, R"("intel_power": 10)");
  return text;
}

Result<model::Recording> import_with(const std::string& extra, const ImportOptions& options = {}) {
  const std::vector<SourceText> sources{{"model_or_results", extra},
                                        {"power", seconds_of({"00", "02", "04", "06"})}};
  return import_texts(sources, options);
}

TEST(AiPowerMeter, EpochsOfAnExperimentAreWindows) {
  for (const char* results :
       {R"([{"end_training_epoch": "2026-11-21 03:00:01.5", "accuracy": 0.5, "loss": 2},
            {"end_training_epoch": "2026-11-21 03:00:05", "accuracy": 0.75}])",
        R"({"1": {"end_training_epoch": "2026-11-21 03:00:05", "accuracy": 0.75, "loss": 2},
            "0": {"end_training_epoch": "2026-11-21 03:00:01.5", "accuracy": 0.5}})",
        "{\"date\": \"2026-11-21 03:00:01.5\", \"metrics\": {\"accuracy\": 0.5, \"loss\": 2}}\n"
        "{\"date\": \"2026-11-21 03:00:05\", \"metrics\": {\"accuracy\": 0.75}}\n"}) {
    const auto recording = import_with(results);
    ASSERT_TRUE(recording) << recording.error().message;
    ASSERT_EQ(recording->windows.size(), 2u) << results;
    EXPECT_EQ(recording->windows[0].name, "epoch");
    EXPECT_EQ(recording->windows[0].begin, HostTime{});
    EXPECT_EQ(recording->windows[0].end, HostTime{std::chrono::milliseconds{1500}});
    EXPECT_EQ(recording->windows[1].begin, recording->windows[0].end);
    EXPECT_EQ(recording->windows[1].end, HostTime{std::chrono::seconds{5}});
    EXPECT_TRUE(has_warning(*recording, "accuracy (2 epochs), loss (1 epoch)"));
  }
}

TEST(AiPowerMeter, EpochsOutsideOfTheRecordedTimeAreCounted) {
  const auto recording = import_with(R"([{"end_training_epoch": "2026-11-21 02:59:59"},
      {"end_training_epoch": "2026-11-21 03:00:03"}, {"end_training_epoch": "2026-11-21 03:00:05"},
      {"end_training_epoch": "2026-11-21 03:00:09"}])");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->windows.size(), 1u);
  EXPECT_EQ(recording->windows[0].begin, HostTime{std::chrono::seconds{3}});
  EXPECT_TRUE(has_warning(*recording, "3 of 4 epochs of model_or_results left out"));
}

TEST(AiPowerMeter, TheModelIsANote) {
  const auto recording = import_with(
      R"({"input_size": 0.6, "total_params": 25557032, "trainable_params": 1000, "total_mult_adds": 4089284608})");
  ASSERT_TRUE(recording);
  EXPECT_TRUE(has_warning(*recording,
                          "25557032 parameters, 1000 trainable parameters, "
                          "4089284608 multiply-adds"));
  EXPECT_TRUE(recording->windows.empty());
}

TEST(AiPowerMeter, WindowsOfEpochsSurviveAnotherLog) {
  const std::vector<SourceText> sources{
      {"power", seconds_of({"00", "02", "04", "06"})},
      {"results", R"([{"end_training_epoch": "2026-11-21 03:00:05"}])"},
      {"smi",
       "timestamp, index, power.draw [W]\n2026/11/21 02:59:58.000, 0, 100.00 W\n"
       "2026/11/21 03:00:01.000, 0, 100.00 W\n2026/11/21 03:00:04.000, 0, 100.00 W\n"}};
  const auto recording = import_texts(sources);
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->windows.size(), 1u);
  EXPECT_EQ(recording->windows[0].begin, HostTime{std::chrono::seconds{2}});
  EXPECT_EQ(recording->windows[0].end, HostTime{std::chrono::seconds{7}});
}

TEST(AiPowerMeter, ResultsAloneAreRefused) {
  EXPECT_THAT(import_error(R"([{"end_training_epoch": "2026-11-21 03:00:05"}])"),
              HasSubstr("import it together with power_metrics.json"));
  EXPECT_THAT(import_error(R"({"total_params": 5})"), HasSubstr("it has no power"));
  EXPECT_FALSE(import_with(R"([{"end_training_epoch": "soon"}])"));
  EXPECT_FALSE(import_with(R"([{"end_training_epoch": 3}, 4])"));
}

}  // namespace
}  // namespace jouleprof::importers
