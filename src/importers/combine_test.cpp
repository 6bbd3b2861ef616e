#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/import.h"
#include "importers/importers_fixture.h"
#include "importers/source_text.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

std::string smi(int first, int last, const std::string& index, double watts) {
  std::string text = "timestamp, index, power.draw [W]\n";
  for (int s = first; s <= last; ++s) {
    text +=
        fmt::format("2026/08/17 22:{:02d}:{:02d}.000, {}, {} W\n", s / 60, s % 60, index, watts);
  }
  return text;
}

Result<model::Recording> import_all(std::vector<SourceText> sources) {
  return import_texts(sources);
}

TEST(Combine, LogsOfDifferentToolsShareATimeLine) {
  const std::string aipm = [] {
    std::string text;
    for (int s = 5; s <= 15; s += 2) {
      text += fmt::format(
          R"({{"date": "2026-08-17 22:00:{:02d}", "metrics": {{"cpu": {{"intel_power": 40}}}}}})",
          s);
      text += '\n';
    }
    return text;
  }();
  const auto recording =
      import_all({{"power.csv", smi(0, 10, "0", 100)}, {"power_metrics.json", aipm}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:nvidia-smi+aipowermeter");
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 1000, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 400, 1e-6);
  EXPECT_EQ(powers_of(*recording, "cpu")[0].at, HostTime{seconds{5}});
  EXPECT_EQ(recording->run.work_end, HostTime{seconds{15}});
  EXPECT_TRUE(has_warning(*recording, "power_metrics.json: time stamps are local time"));
}

TEST(Combine, OneGpuAFileAndOneDayAfterTheOther) {
  auto recording = import_all({{"a", smi(0, 10, "0", 100)}, {"b", smi(0, 10, "1", 50)}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->domains.size(), 2u);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 500, 1e-6);

  recording = import_all({{"b", smi(600, 610, "0", 100)}, {"a", smi(0, 10, "0", 100)}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->domains.size(), 1u);
  EXPECT_EQ(recording->sensors.size(), 1u);
  EXPECT_TRUE(has_warning(*recording, "paused 1 time: 589 s"));
  EXPECT_EQ(recording->run.work_end, HostTime{seconds{21}});  // and a second for the seam
}

// A device whose last reading is a moment before the other's is no lost one, and a log without
// energies does not lengthen the work.
TEST(Combine, TheWorkIsTheTimeThatAllDevicesHaveReadingsOf) {
  const auto log = [](int from, int to, const char* device, const char* figure) {
    std::string text = fmt::format("time_unix_seconds,device,domain,sensor,{}\n", figure);
    for (int i = from; i <= to; ++i) {
      text += fmt::format("{}.{:02},{},gpu,s,{}\n", 1772420400 + (i + 50) / 50, (i + 50) % 50 * 2,
                          device, figure == std::string("power_watts") ? 100 : 2 * (i + 50));
    }
    return text;
  };
  const auto recording = import_all({{"a", log(0, 500, "gpu0", "power_watts")},
                                     {"b", log(-20, 530, "gpu1", "energy_joules")},
                                     {"c", log(-50, 1500, "gpu0", "memory_used_bytes")}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(jouleprof::seconds(*recording->run.work_end - *recording->run.work_begin), 10, 1e-3);
  EXPECT_EQ(recording->readings.counters.size(), 551u);
}

TEST(Combine, ADeviceWhoseLogBeginsLateKeepsItsTimes) {
  const auto log = [](int from, const char* device) {
    std::string text = "time_unix_seconds,device,domain,sensor,power_watts\n";
    for (int s = from; s <= 20; ++s) {
      text += fmt::format("{},{},gpu,s,100\n", 1772420400 + s, device);
    }
    return text;
  };
  for (const bool late_first : {true, false}) {
    SourceText late{"late", log(5, "gpu1")}, other{"other", log(0, "gpu0")};
    const auto recording = late_first ? import_all({late, other}) : import_all({other, late});
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(powers_of(*recording, "gpu1").front().at, HostTime{seconds{5}}) << late_first;
    EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 2000, 1e-6) << late_first;
  }
}

TEST(Combine, TheSameGpuTwiceAtOneTimeIsRefused) {
  const auto recording = import_all({{"a", smi(0, 10, "0", 100)}, {"b", smi(5, 15, "0", 100)}});
  ASSERT_FALSE(recording);
  EXPECT_THAT(recording.error().message,
              HasSubstr("a and b have the power of gpu0 at the same time"));
}

TEST(Combine, ACopyOfAFileCountsOnce) {
  const auto twice = import_all({{"a", smi(0, 10, "0", 100)}, {"b", smi(0, 10, "0", 100)}});
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*twice, "gpu0")), 1000, 1e-6);
  EXPECT_TRUE(has_warning(*twice, "b left out: it is a copy of a"));
  // These may be two GPUs that draw the same.
  const std::string zeus = "Time,Power\n2026-08-17 22:00:00.5,50000\n2026-08-17 22:00:01.5,50000\n";
  const auto alike = import_all({{"a", zeus}, {"b", zeus}});
  ASSERT_TRUE(alike) << alike.error().message;
  EXPECT_EQ(alike->domains.size(), 2u);
  EXPECT_TRUE(has_warning(*alike, "b holds what a holds: if it is a copy of it, leave it out"));
}

// One table that was saved again later, and a copy that an editor changed a little.
TEST(Combine, AWindowThatIsInTwoTablesCountsOnce) {
  const std::string head = "start_time,window_name,elapsed_time,gpu0_energy\n";
  const std::string first = "1772420400.0,step,2.0,100.0\n1772420402.0,step,2.0,110.0\n";
  const auto recording = import_all({{"a", head + first},
                                     {"b", head + first + "1772420404.0,step,2.0,120.0\n"},
                                     {"c", head + "1772420404.0,step,2.0,121.0\n"}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->imported_windows.size(), 4u);
  EXPECT_TRUE(
      has_warning(*recording, "b: 2 windows left out that stand in another of these files"));
}

TEST(Combine, LogsWithoutTimesAreRefused) {
  const auto recording =
      import_all({{"a", smi(0, 10, "0", 100)}, {"b", "# gpu pwr\n# Idx W\n 1 61\n 1 62\n"}});
  ASSERT_FALSE(recording);
  EXPECT_THAT(recording.error().message, HasSubstr("b: its rows have no date and time"));
}

TEST(Combine, AWattmeterAndAllGpusTogetherAreNotCountedTwice) {
  const auto begin = RealTime{instants_of(*parse_calendar_time("2026-08-17 22:00:00")).first};
  std::string meter = "#timestamp,#frame_is_ok,#activepow1\n";
  for (int s = 0; s <= 10; ++s) {
    meter += fmt::format("{}.0,true,300\n",
                         std::chrono::duration_cast<seconds>(begin.time_since_epoch()).count() + s);
  }
  std::string all;
  for (int s = 0; s <= 10; ++s) {
    all += fmt::format(
        R"({{"date": "2026-08-17 22:00:{:02d}", "metrics": {{"gpu": {{"nvidia_power": 100}}}}}})",
        s);
    all += '\n';
  }
  const auto recording =
      import_all({{"smi", smi(0, 10, "0", 100)}, {"omegawatt.csv", meter}, {"json", all}});
  ASSERT_TRUE(recording) << recording.error().message;
  for (const auto& domain : recording->domains) {
    if (domain.device == "gpu0") {
      ASSERT_TRUE(domain.parent);
      EXPECT_EQ(recording->domains[static_cast<std::size_t>(*domain.parent)].device, "gpus");
    } else {
      EXPECT_FALSE(domain.parent) << domain.device;
    }
  }
}

TEST(Combine, APackageAndItsCoresStayTwoDomains) {
  std::string own = "time_unix_seconds,device,domain,sensor,power_watts\n";
  const auto begin = RealTime{instants_of(*parse_calendar_time("2026-08-17 22:00:00")).first};
  const auto second = std::chrono::duration_cast<seconds>(begin.time_since_epoch()).count();
  for (int s = 0; s <= 10; ++s) {
    own += fmt::format("{0}.0,package-0,cpu,powercap,40\n{0}.0,package-0,cpu_cores,powercap,30\n",
                       second + s);
  }
  const auto recording = import_all({{"own", own}, {"smi", smi(0, 10, "0", 100)}});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->domains.size(), 3u);
  EXPECT_EQ(recording->domains[1].kind, model::DomainKind::kCpuCores);
  EXPECT_EQ(recording->domains[1].parent, recording->domains[0].id);
  EXPECT_EQ(recording->sensors.size(), 3u);
}

// Else the measured power would be in no total.
TEST(Combine, WindowsOfAllGpusContainNoMeasuredOne) {
  const auto recording =
      import_all({{"smi", smi(0, 10, "0", 100)},
                  {"emissions.csv",
                   "timestamp,project_name,run_id,duration,emissions,gpu_energy,energy_consumed\n"
                   "2026-08-17T22:00:10,train,A,10.0,0.1,0.0003,0.0003\n"}});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->domains.size(), 2u);
  EXPECT_EQ(recording->domains[1].device, "gpus");
  EXPECT_FALSE(recording->domains[0].parent);
}

TEST(Combine, PmonNamesProcesses) {
  const std::string pmon =
      "#Date       Time        gpu        pid  type    sm   mem   command\n"
      "#YYYYMMDD   HH:MM:SS    Idx          #   C/G     %     %   name\n"
      " 20260817   22:00:00      0       4242     C    50    10   python train\n"
      " 20260817   22:00:00      0        777     C     -     -   idle\n"
      " 20260817   22:00:05      0       4242     C    70    10   python train\n";
  const auto recording = import_all({{"dmon", smi(0, 10, "0", 100)}, {"pmon", pmon}});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->processes.size(), 2u);
  EXPECT_EQ(recording->processes[0].pid, 4242);
  EXPECT_EQ(recording->processes[0].name, "python train");
  ASSERT_EQ(recording->process_readings.gpu_processes.size(), 3u);
  EXPECT_EQ(recording->process_readings.gpu_processes[2].compute_utilisation, 0.7);
  EXPECT_EQ(recording->process_readings.gpu_processes[2].at, HostTime{seconds{5}});
  EXPECT_TRUE(recording->domains[0].unavailable_reason.empty());

  // Headers are known in any case, as dmon's.
  const auto shouted = import_all({{"dmon", smi(0, 10, "0", 100)},
                                   {"pmon",
                                    "#DATE Time GPU Pid SM\n"
                                    "20260817 22:00:00 0 4242 50\n"}});
  ASSERT_TRUE(shouted) << shouted.error().message;
  ASSERT_EQ(shouted->processes.size(), 1u);
  EXPECT_EQ(shouted->processes[0].pid, 4242);

  // Without dates the first rows would be of 1970.
  const auto mixed = import_all({{"dmon", smi(0, 10, "0", 100)},
                                 {"pmon", "# gpu pid type sm command\n 0 4242 C 50 a\n" + pmon}});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("pmon, line 3: the header has other time columns"));

  EXPECT_THAT(import_error(pmon), HasSubstr("pmon shows no power; import it together"));
  EXPECT_THAT(import_error("# gpu pid type sm mem command\n 0 1 C 5 5 a\n"), HasSubstr("-o DT"));
}

// The command took all of the next row, and its process was lost without a word.
TEST(Combine, ARowOfPmonThatRunsIntoTheNextIsLeftOutAndCounted) {
  const std::string header = "#Date       Time        gpu        pid  type    sm   mem   command\n";
  for (const std::string first :
       {" 20260817   22:00:00      0       4242     C    50    10   pyth",
        " 20260817   22:00:00      0       4242     C    50    10   python ",
        " 20260817   22:00:00      0  "}) {
    const auto recording = import_all(
        {{"dmon", smi(0, 10, "0", 100)},
         {"pmon", header + first +
                      "20260817   22:00:01      0        777     C     99   10   train\n"
                      " 20260817   22:00:02      0       4242     C    70    10   python\n"
                      " 20260817   22:00:03      0       4242     C    70    10   at 22:00:03\n"}});
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->process_readings.gpu_processes.size(), 2u) << first;
    EXPECT_EQ(recording->processes.size(), 1u) << first;
    EXPECT_TRUE(has_warning(*recording, "1 row left out that cannot be right")) << first;
  }
}

TEST(Combine, AFolderStandsForItsFiles) {
  const TempTree tree{{"exp/smi.csv", smi(0, 10, "0", 100)},
                      {"exp/model_summary.json", "{\"total_params\": 5}\n"}};
  const auto recording = import_files({tree / "exp"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 1000, 1e-6);
  EXPECT_TRUE(has_warning(*recording,
                          "1 file of the folder left out, without power or of no known format: "
                          "model_summary.json"));
  const TempTree none{{"exp/notes.txt", "x\n"}};
  const auto failed = import_files({none / "exp"});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("no file in this folder"));
}

}  // namespace
}  // namespace jouleprof::importers
