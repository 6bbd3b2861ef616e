// Rows, times, encodings and units, which all logs and tables share.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/gzip/gzip.h"
#include "importers/importers_fixture.h"
#include "model/device/sensor_table.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kLog =
    "timestamp, index, power.draw [W]\n"
    "2026/03/02 03:00:00.000, 0, 120.00 W\n2026/03/02 03:00:01.000, 0, 120.00 W\n";

double joules(const Result<model::Recording>& recording, std::string_view device = "gpu0") {
  return recording ? trapezoid(powers_of(*recording, device)) : -1;
}

TEST(Rows, AWholeLastRowCountsWithoutALineEnd) {
  const auto whole = import_text(kLog + "2026/03/02 03:00:02.000, 0, 120.00 W");
  EXPECT_NEAR(joules(whole), 240, 1e-9);
  EXPECT_TRUE(whole->run.complete);
  for (const char* cut : {"2026/03/02 03:00:02.000, 0", "2026/03/02 03:00:02.000, 0, 12",
                          "2026/03/02 03:00:02.000, 0, 120.0", "2026/0"}) {
    const auto recording = import_text(kLog + cut);
    EXPECT_NEAR(joules(recording), 120, 1e-9) << cut;
    EXPECT_TRUE(has_warning(*recording, "in, line 4")) << cut;
    EXPECT_TRUE(recording->run.complete);
  }
  const auto one = import_text(
      "timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed,mode\n"
      "2026-03-02T03:00:10,train,A,10.0,0.1,0.001,0.001,N");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->imported_windows.size(), 1u);
  EXPECT_TRUE(one->run.complete);
}

TEST(Rows, ADeviceThatWasReadOnceHasNoEnergy) {
  const auto log = import_text(kLog + "2026/03/02 03:00:01.500, 1, 400.00 W\n");
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->domains.size(), 2u);
  EXPECT_THAT(log->domains[1].unavailable_reason, HasSubstr("was read once; an energy needs two"));
  EXPECT_EQ(log->domains[0].unavailable_reason, "");
  EXPECT_EQ(log->readings.powers.size(), 2u);
}

TEST(Rows, AHeaderWithinALogIsNoPause) {
  const auto log = import_text(kLog + kLog.substr(0, kLog.find('\n') + 1) +
                               "2026/03/02 03:00:02.000, 0, 120.00 W\n");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_FALSE(has_warning(*log, "paused"));
}

TEST(Rows, OneImpossibleRowLeavesOutThatRow) {
  const auto log = import_text(kLog + "2126/99/02 03:00:02.000, 0, 120.00 W\n" +
                               "2026/03/02 03:00:02.000, 0, 120.00 W\n");
  EXPECT_NEAR(joules(log), 240, 1e-9);
  EXPECT_TRUE(has_warning(*log, "1 row left out that cannot be right; the first is line 4"));
  const auto late = import_text(kLog + "2026/03/09 03:00:02.000, 0, 120.00 W\n" +
                                "2026/03/02 03:00:02.000, 0, 120.00 W\n");
  EXPECT_NEAR(joules(late), 240, 1e-9);
  EXPECT_TRUE(has_warning(*late, "its time is far from those of the rows around it"));
  const auto table = import_text(
      "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,energy_consumed\n"
      "2026-03-02T03:00:10,train,A,10.0,0.1,0.001,0.001,0.002\n"
      "2026-03-02T03:01:10,train,B,10.0,0.1,0.001,-1.16e-06,0.002\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->imported_windows.size(), 1u);
  EXPECT_TRUE(has_warning(*table, "line 3: gpu_energy is '-1.16e-06', no energy"));
}

// As `nvidia-smi --query-gpu=index,power.draw --format=csv -l 3 | ts` writes them.
TEST(Rows, TimesInFrontOfALogWithoutTimesAreItsTimes) {
  const std::string log =
      "Mar 02 03:00:00 index, power.draw [W]\nMar 02 03:00:00 0, 120.00 W\n"
      "Mar 02 03:00:03 0, 120.00 W\nMar 02 03:00:06 0, 120.00 W\n";
  EXPECT_NEAR(joules(import_text(log)), 720, 1e-9);
  ImportOptions options;
  options.format = "nvidia-smi";
  EXPECT_NEAR(joules(import_text(log, options)), 720, 1e-9);
}

TEST(Rows, AllKindsOfTimes) {
  const RealTime begin{seconds{1772420400}};  // 2026-03-02 03:00:00 UTC
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"2026-03-02T03:00:00Z", "2026-03-02T03:00:01Z"},
           {"2026-03-02T11:00:00+08:00", "2026-03-02T11:00:01+08:00"},
           {"2026/03/01 22:00:00.000 -0500", "2026/03/01 22:00:01.000 -0500"},
           {"2026-03-02 03:00:00 UTC", "2026-03-02 03:00:01 UTC"},
           {"02.03.2026 03:00:00 UTC", "02.03.2026 03:00:01 UTC"},
           {"3/2/2026 3:00:00 AM UTC", "3/2/2026 3:00:01 AM UTC"},
           {"3/1/2026 10:00:00 PM -0500", "3/1/2026 10:00:01 PM -0500"},
           {"Mon Mar  2 03:00:00 UTC 2026", "Mon Mar  2 03:00:01 UTC 2026"},
           {"Mon Mar  2 03:00:00 AM UTC 2026", "Mon Mar  2 03:00:01 AM UTC 2026"},
           {"1772420400", "1772420401"},
           {"1772420400.000", "1772420401.000"},
           {"1772420400000", "1772420401000"},
           {"1772420400000.0", "1772420401000.0"},
           {"1772420400000000", "1772420401000000"},
           {"1772420400000000000", "1772420401000000000"}}) {
    const auto recording = import_text("timestamp,index,power.draw [W]\n" + first + ",0,100.00\n" +
                                       second + ",0,100.00\n");
    ASSERT_TRUE(recording) << first << recording.error().message;
    EXPECT_NEAR(joules(recording), 100, 1e-6) << first;
    EXPECT_EQ(recording->clock_points.at(0).real, begin) << first;
  }
  const auto elapsed = import_text("timestamp,index,power.draw [W]\n0.0,0,100\n1.5,0,100\n");
  EXPECT_NEAR(joules(elapsed), 150, 1e-6);
  EXPECT_TRUE(elapsed->clock_points.empty());
}

std::string utf16(std::string_view text, bool big_endian, bool mark) {
  std::string out = mark ? (big_endian ? "\xFE\xFF" : "\xFF\xFE") : "";
  for (const char c : text) {
    if (big_endian) out += '\0';
    out += c;
    if (!big_endian) out += '\0';
  }
  return out;
}

// 100 W in looks of `step` minutes, whose times the given clock shows.
std::string local_log(std::vector<std::string> times) {
  std::string text = "timestamp, index, power.draw [W]\n";
  for (const std::string& time : times) text += "2026/" + time + ":00.000, 0, 100.00 W\n";
  return text;
}

double joules_of(const std::string& text) {
  const auto recording = import_text(text);
  EXPECT_TRUE(recording) << recording.error().message;
  return recording ? trapezoid(powers_of(*recording, "gpu0")) : 0;
}

TEST(Rows, AChangeOfSummerTimeLosesNoTime) {
  const ScopedZone zone(kBerlin);
  const std::string spring =
      local_log({"03/29 01:45", "03/29 01:50", "03/29 01:55", "03/29 03:00", "03/29 03:05"});
  EXPECT_NEAR(joules_of(spring), 100 * 20 * 60, 1e-6);
  EXPECT_FALSE(has_warning(*import_text(spring), "paused"));
  const std::string autumn =
      local_log({"10/25 01:40", "10/25 02:00", "10/25 02:20", "10/25 02:40", "10/25 02:00",
                 "10/25 02:20", "10/25 02:40", "10/25 03:00"});
  EXPECT_NEAR(joules_of(autumn), 100 * 140 * 60, 1e-6);
  EXPECT_TRUE(has_warning(*import_text(autumn), "twice at the end of summer time"));
  EXPECT_NEAR(joules_of(local_log({"10/25 00:30", "10/25 01:30", "10/25 02:30", "10/25 02:30",
                                   "10/25 03:30", "10/25 04:30"})),
              100 * 5 * 3600, 1e-6);
  // It begins in the second of the two hours.
  EXPECT_NEAR(joules_of(local_log({"10/25 02:20", "10/25 02:40", "10/25 03:00"})), 100 * 40 * 60,
              1e-6);
  // Of a machine whose clock has no summer time.
  for (const std::string day : {"03/29", "10/25"}) {
    const std::string text =
        local_log({day + " 01:40", day + " 02:00", day + " 02:20", day + " 02:40", day + " 03:00"});
    EXPECT_NEAR(joules_of(text), 100 * 80 * 60, 1e-6);
    EXPECT_TRUE(has_warning(*import_text(text), "do not follow the change of summer time"));
  }
}

TEST(Rows, AnHourThatIsRepeatedInAnotherZoneLosesNoTime) {
  const ScopedZone zone("UTC");
  const std::string text = local_log({"10/25 02:00", "10/25 02:20", "10/25 02:40", "10/25 02:00",
                                      "10/25 02:20", "10/25 02:40", "10/25 03:00"});
  EXPECT_NEAR(joules_of(text), 100 * 120 * 60, 1e-6);
  EXPECT_TRUE(has_warning(*import_text(text), "go back by one hour"));
}

TEST(Rows, Utf16IsRead) {
  for (const bool big_endian : {false, true}) {
    for (const bool mark : {false, true}) {
      const TempTree tree{{"log.csv", utf16(kLog, big_endian, mark)}};
      EXPECT_NEAR(joules(import_files({tree / "log.csv"})), 120, 1e-9);
    }
  }
  EXPECT_EQ(*utf8_text(std::string("\xFF\xFE\x3D\xD8\x00\xDE\xAC\x20", 8), "x"),
            "\xF0\x9F\x98\x80\xE2\x82\xAC");
}

// As `cat gpu0.csv gpu1.csv` makes it, or loggers that write blocks of rows into one file.
TEST(Rows, DevicesOneAfterTheOtherAreOneTime) {
  const auto rows = [](int device, int first, int end) {
    std::string text;
    for (int s = first; s < end; ++s) {
      text += fmt::format("2026/03/02 03:00:{:02d}.00{}, {}, {} W\n", s, device, device,
                          100 + 50 * device + s % 3);
    }
    return text;
  };
  const std::string head = "timestamp, index, power.draw [W]\n";
  std::string in_turn = head, blocks = head;
  for (int s = 0; s < 30; ++s) in_turn += rows(0, s, s + 1) + rows(1, s, s + 1);
  for (int s = 0; s < 30; s += 10) blocks += rows(0, s, s + 10) + rows(1, s, s + 10);
  const auto usual = import_text(in_turn);
  EXPECT_FALSE(has_warning(*usual, "were sorted"));
  for (const auto& text : {head + rows(0, 0, 30) + rows(1, 0, 30), blocks,
                           head + rows(0, 0, 30) + head + rows(1, 0, 30),
                           head + rows(0, 0, 2) + rows(1, 0, 30) + rows(0, 2, 30)}) {
    const auto log = import_text(text);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(joules(log), joules(usual));
    EXPECT_EQ(joules(log, "gpu1"), joules(usual, "gpu1"));
    EXPECT_EQ(log->run.work_end, usual->run.work_end);
    EXPECT_TRUE(has_warning(*log, "not in the order of their times: they were sorted"));
    EXPECT_FALSE(has_warning(*log, "time stamps go back"));
  }
}

TEST(Rows, ALogWithoutTimesThatStandsThereTwice) {
  std::string counted = "#Entity POWER TOTEC\nID W mJ\n", dmon = "# gpu pwr\n# Idx W\n";
  long long total = 5'000'000;
  for (int i = 0; i < 20; ++i) {
    const int watts = 100 + i * i % 17;
    total += 1000 * watts;
    counted += fmt::format("GPU 0 {} {}\n", watts, total);
    dmon += fmt::format(" 0 {}\n", watts);
  }
  EXPECT_EQ(joules(import_text(counted + counted)), joules(import_text(counted)));
  EXPECT_TRUE(
      has_warning(*import_text(counted + counted), "20 rows left out that stand in the log twice"));
  EXPECT_FALSE(has_warning(*import_text(dmon), "once more"));
  const auto twice = import_text(dmon + dmon);
  EXPECT_TRUE(has_warning(*twice, "the rows from line 25 on are those before it once more"));
  // A load that alternates.
  std::string square = "# gpu pwr\n# Idx W\n";
  for (int i = 0; i < 80; ++i) square += fmt::format(" 0 {}\n", i % 20 < 10 ? 100 : 300);
  EXPECT_FALSE(has_warning(*import_text(square), "once more"));
}

TEST(Rows, ATableWithoutTimesThatStandsThereTwiceCountsOnce) {
  const std::string executions = "kernel_name,exec_id,duration_ms,energy_j\n";
  const std::string mm = "mm,0,1.5,0.3\n";
  auto table = import_text(executions + mm + mm + "mm,1,1.5,0.3\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->imported_windows.size(), 2u);
  EXPECT_TRUE(has_warning(*table, "1 row left out that stands in the file twice"));
  table = import_text("kernel_name,total_duration_ms,total_energy_j\nmm,1.5,0.3\nmm,1.5,0.3\n");
  EXPECT_EQ(table->imported_windows.size(), 1u);
  // Executions without a number may be alike.
  table = import_text("kernel_name,duration_ms,energy_j\nmm,1.5,0.3\nmm,1.5,0.3\n");
  EXPECT_EQ(table->imported_windows.size(), 2u);
  const std::string samples = "300,20,280\n300,21,281\n200,8,200\n200,9,201\n200,9,201\n";
  const std::string head = "max_watt,tokens_per_sec,total_power_draw\n";
  EXPECT_EQ(import_text(head + samples)->imported_windows.size(), 5u);
  table = import_text(head + samples + head + samples);
  EXPECT_EQ(table->imported_windows.size(), 5u);
  EXPECT_TRUE(has_warning(*table, "5 rows left out that stand in the file twice"));
}

// A log of one line would spread its rows over one second.
TEST(Rows, LinesMayEndInCarriageReturnsAlone) {
  std::string tegra;
  for (int s = 0; s < 8; ++s) {
    tegra += fmt::format("03-02-2026 03:00:{:02d} RAM 2/7MB GR3D_FREQ 3% VDD_GPU {}mW/4000mW\n", s,
                         4000 + 100 * s);
  }
  for (std::string text : {tegra, kLog}) {
    const double usual = joules(import_text(text));
    EXPECT_GT(usual, 20);
    std::ranges::replace(text, '\n', '\r');
    EXPECT_EQ(joules(import_text(text)), usual);
  }
}

TEST(Rows, ARowOfATableThatStandsThereTwiceCountsOnce) {
  const std::string row = "1772420400.0,step,2.0,100.0\n";
  const auto table = import_text("start_time,window_name,elapsed_time,gpu0_energy\n" + row + row +
                                 "1772420402.0,step,2.0,100.0\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->imported_windows.size(), 2u);
  EXPECT_TRUE(has_warning(*table, "1 row left out that stands in the file twice"));
}

TEST(Rows, ADecimalCommaAfterZeroIsNoMarkOfThousands) {
  const std::string head = "timestamp;power.draw [W]\n";
  const auto log =
      import_text(head + "2026/03/02 03:00:00,000;0,750 W\n2026/03/02 03:00:01,000;0,250 W\n");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_NEAR(joules(log, "gpu0"), 0.5, 1e-6);
  EXPECT_THAT(import_error(head + "2026/03/02 03:00:00,000;1,250 W\n"
                                  "2026/03/02 03:00:01,000;1,750 W\n"),
              HasSubstr("may be a number of thousands"));
}

TEST(Rows, NamesThatAreNoUtf8AreMended) {
  const TempTree tree{{"w.csv",
                       "start_time,window_name,elapsed_time,gpu0_energy\n"
                       "1772420400.0,caf\xE9,2.0,100.0\n"}};
  const auto recording = import_files({tree / "w.csv"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->imported_windows.at(0).name, "caf\xEF\xBF\xBD");
  EXPECT_TRUE(has_warning(*recording, "1 piece of its text is no UTF-8"));
}

TEST(Rows, TimesInFrontOfEachLine) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"Mar 02 03:00:00", "Mar 02 03:00:02"},
           {"2026-03-02 03:00:00", "2026-03-02 03:00:02"},
           {"2026-03-02T03:00:00Z", "2026-03-02T03:00:02Z"},
           {"1772420400.000", "1772420402.000"},
           {"03:00:00", "03:00:02"}}) {
    const std::string dcgm = first + " #Entity  POWER\n" + first + " ID  W\n" + first +
                             " GPU 0  100.0\n" + second + " GPU 0  100.0\n";
    const auto recording = import_text(dcgm);
    ASSERT_TRUE(recording) << first << recording.error().message;
    EXPECT_EQ(recording->run.source, "import:dcgmi");
    EXPECT_NEAR(joules(recording), 200, 1e-6) << first;
    const auto dmon = import_text(first + " # gpu pwr\n" + first + " # Idx W\n" + first +
                                  "     0   100\n" + second + "     0   100\n");
    ASSERT_TRUE(dmon) << first << dmon.error().message;
    EXPECT_NEAR(joules(dmon), 200, 1e-6) << first;
  }
}

TEST(Rows, PowersAboveTheDevicesLimitAreRefused) {
  const auto log = [](double watts, double limit) {
    std::string text = "timestamp, index, power.draw [W], power.limit [W]\n";
    for (int i = 0; i < 5; ++i) {
      text += fmt::format("2026/03/02 03:00:0{}.000, 0, {:.2f}, {:.2f}\n", i, watts + i, limit);
    }
    return text;
  };
  EXPECT_THAT(
      import_error(log(5120, 25)),
      HasSubstr("gpu0 draws 5122 W, which is above its limit of 25 W in the log: wrong unit?"));
  EXPECT_THAT(import_error(log(1500, 25)), HasSubstr("wrong unit?"));
  EXPECT_TRUE(import_text(log(310, 300)));
  EXPECT_THAT(import_error("timestamp, name, power.draw [W]\n2026/03/02 03:00:00.000, Orin, 900\n"
                           "2026/03/02 03:00:01.000, Orin, 900\n"),
              HasSubstr("above the greatest limit of Orin"));
  // An L40S is no L4.
  const auto named = [](const std::string& name) {
    return import_text("timestamp, name, power.draw [W]\n2026/03/02 03:00:00.000, " + name +
                       ", 300\n2026/03/02 03:00:01.000, " + name + ", 300\n");
  };
  for (const char* name : {"NVIDIA L40S", "NVIDIA L40", "NVIDIA A20", "NVIDIA GH200 480GB",
                           "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"}) {
    EXPECT_TRUE(named(name)) << name;
  }
  for (const char* name : {"NVIDIA L4", "Tesla T4", "NVIDIA A2", "Orin (nvgpu)", "Jetson Nano"}) {
    EXPECT_FALSE(named(name)) << name;
  }
  EXPECT_THAT(import_error("# gpu pwr\n# Idx W\n0 5100\n0 5200\n0 5150\n"),
              HasSubstr("above what any gpu draws"));
  // Single values are left out.
  const auto one = import_text(kLog + "2026/03/02 03:00:02.000, 0, 99000.00 W\n" +
                               "2026/03/02 03:00:03.000, 0, 120.00 W\n");
  EXPECT_NEAR(joules(one), 360, 1e-6);
  EXPECT_TRUE(has_warning(*one, "1 power value of up to 99000 W left out"));
}

TEST(Rows, APowerThatIsLeftOutIsNoReading) {
  const std::string spike =
      "2026/03/02 03:00:02.000, 1, 100.00 W\n"
      "2026/03/02 03:00:03.000, 1, 5000.00 W\n";
  const auto two = import_text(kLog + spike);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_THAT(two->domains.at(1).unavailable_reason, HasSubstr("was read once; an energy needs"));
  EXPECT_TRUE(powers_of(*two, "gpu1").empty());
  EXPECT_EQ(two->readings.failures.size(), 1u);
  EXPECT_THAT(import_error(kLog.substr(0, kLog.find('\n') + 1) + spike),
              HasSubstr("fewer than two power readings"));
  // Nor does it count in the mean power that an energy counter is held against.
  const auto counted = import_text(
      "#Entity POWER TOTEC\nID W mJ\nGPU 0 100 1000\nGPU 0 100 101000\nGPU 0 99000 201000\n"
      "GPU 0 100 301000\nGPU 0 100 401000\n");
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_TRUE(has_warning(*counted, "1 power value of up to 99000 W left out"));
}

TEST(Rows, CodeCarbonsPueIsUndone) {
  const auto recording = import_text(
      "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,energy_consumed,pue\n"
      "2026-03-02T03:00:10,train,A,100.0,0.1,0.002,0.009,0.011,1.2\n"
      "2026-03-02T03:10:10,train,B,100.0,0.1,0.002,0.009,0.011,1.0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  const auto& first = recording->imported_windows.at(0);
  EXPECT_EQ(first.energies.at(0).energy, Energy::joules(6000));
  EXPECT_EQ(first.energies.at(1).energy, Energy::joules(27000));
  EXPECT_EQ(first.labels.back(), (model::ImportedWindow::Label{"pue", "1.2"}));
  EXPECT_EQ(recording->imported_windows.at(1).energies.at(1).energy, Energy::joules(32400));
  EXPECT_TRUE(has_warning(*recording, "multiplied the energies of 1 row by a PUE"));
  // A factor that cannot be read is not taken for 1.
  for (const char* pue : {"nan", "inf", "\"1,5\"", "?", "0.5"}) {
    const auto unknown = import_text(
        std::string("timestamp,run_id,duration,emissions,gpu_energy,energy_consumed,pue\n"
                    "2026-03-02T03:00:10,A,100.0,0.1,0.009,0.009,") +
        pue +
        "\n2026-03-02T03:10:10,B,100.0,0.1,0.006,0.006,1.2\n2026-03-02T03:20:10,C,100.0,0.1,0.006,"
        "0.006,\n");
    ASSERT_TRUE(unknown) << unknown.error().message;
    ASSERT_EQ(unknown->imported_windows.size(), 2U) << pue;
    EXPECT_TRUE(has_warning(*unknown, "its PUE is ")) << pue;
  }
}

TEST(NamedCsv, ColumnsAreNamed) {
  const std::string text =
      "a title\nwhen,board (mW),host W,other\n1772420400,50000,90,x\n1772420401,50000,90,x\n";
  const auto recording =
      import_text(text, {.power_columns = {"gpu1=board", "psys=host W"}, .time_column = "when"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:columns");
  EXPECT_NEAR(joules(recording, "gpu1"), 50, 1e-9);
  EXPECT_NEAR(joules(recording, "psys"), 90, 1e-9);
  EXPECT_EQ(recording->clock_points.at(0).real, RealTime{seconds{1772420400}});
  EXPECT_TRUE(has_warning(*recording, "1 column left out: 'other'"));
  EXPECT_THAT(import_error(text, {.power_columns = {"gpu0=watts"}, .time_column = "when"}),
              HasSubstr("it has no column 'watts'; it has: when, board (mW), host W, other"));
  EXPECT_THAT(import_error(text, {.power_columns = {"host W:J"}, .time_column = "when"}),
              HasSubstr("'J' is no unit of power; give one of W, mW, uW, kW, MW"));
  EXPECT_THAT(import_error(text, {.power_columns = {"board"}, .time_column = "when:h"}),
              HasSubstr("'h' is no unit of time; give one of s, ms, us, ns"));
}

TEST(NamedCsv, MilliwattsUnderANameForWattsAreRefused) {
  const ImportOptions options{.power_columns = {"p_w"}, .time_column = "t"};
  EXPECT_THAT(
      import_error("t,p_w\n0,200000\n1,200000\n2,90\n", options),
      HasSubstr("gpu0 draws 200000 W, which is above what any gpu draws (2000 W): wrong unit? "
                "Milliwatts under a name for watts are read with --power-column"));
  EXPECT_TRUE(import_text("t,p_w\n0,90\n1,200000\n2,90\n", options));
}

TEST(NamedCsv, TimesWithoutAUnitAreNoted) {
  const std::string text = "t,p (W)\n0,90\n1000,90\n2000,90\n";
  const auto seconds_of = [&](const char* column) {
    return import_text(text, {.power_columns = {"p"}, .time_column = column});
  };
  EXPECT_TRUE(has_warning(*seconds_of("t"), "column 't' is taken to be in seconds; name another"));
  EXPECT_FALSE(has_warning(*seconds_of("t:s"), "taken to be in seconds"));
  EXPECT_FALSE(has_warning(*seconds_of("t:ms"), "taken to be in seconds"));
  const auto by_size = [](const char* column) {
    return *import_text("t,p (W)\n1772420400000000,90\n1772420401000000,90\n",
                        {.power_columns = {"p"}, .time_column = column});
  };
  EXPECT_TRUE(has_warning(by_size("t"), "'t' is taken to count from 1970, in a unit by the size"));
  EXPECT_FALSE(has_warning(by_size("t:us"), "by the size"));
}

// An uptime in nanoseconds or milliseconds has as many digits as one since 1970 in a coarser unit.
TEST(NamedCsv, NumbersAreTimesInTheUnitOfTheirColumn) {
  const auto import = [](const char* column, std::int64_t begin, std::int64_t step,
                         const char* named) {
    std::string text = fmt::format("{},p (W)\n", column);
    for (int i = 0; i <= 10; ++i) text += fmt::format("{},100\n", begin + i * step);
    return import_text(text, {.power_columns = {"p"}, .time_column = named});
  };
  struct Case {
    const char* column;
    std::int64_t begin, step;
    const char* named;
  };
  for (const auto& [column, begin, step, named] :
       {Case{"t_ns", 1'234'567'890'123'456, 1'000'000'000, "t_ns"},
        Case{"uptime", 1'234'567'890'123'456, 1'000'000'000, "uptime:ns"},
        Case{"t", 999'000'000, 1'000'000, "t:us"}, Case{"t (ms)", 999'995'000, 1000, "t"},
        Case{"t", 0, 1, "t:s"}}) {
    const auto recording = import(column, begin, step, named);
    EXPECT_NEAR(joules(recording), 1000, 1e-6) << named;
    EXPECT_TRUE(has_warning(*recording, "do not count from 1970")) << named;
  }
  const auto dated = import("t", 1'772'420'400'000, 1000, "t:ms");
  EXPECT_NEAR(joules(dated), 1000, 1e-6);
  EXPECT_EQ(dated->clock_points.at(0).real, RealTime{seconds{1'772'420'400}});
  const auto wrong = import("t", 1'772'420'400'000, 1000, "t:s");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("'1772420400000' is no time"));
}

TEST(NamedCsv, TheUnitOfAColumnIsInItsName) {
  for (const auto& [column, cell, named] : {std::array{"site_MW", "0.0006", "site_MW"},
                                            {"site (MW)", "0.0006", "site"},
                                            {"site power [kW]", "0.6", "site power"},
                                            {"site_kilowatts", "0.6", "site_kilowatts"},
                                            {"site_mw", "600000", "site"},
                                            {"site W", "600", "site"},
                                            {"energy_kwh", "600", "energy_kwh:W"},
                                            {"site (mean)", "600", "site"}}) {
    const auto recording = import_text(fmt::format("t_s,{0}\n0,{1}\n1,{1}\n", column, cell),
                                       {.power_columns = {named}, .time_column = "t_s"});
    EXPECT_NEAR(joules(recording), 600, 1e-6) << column;
  }
  EXPECT_THAT(import_error("t_s,energy_kWh\n0,600\n1,600\n",
                           {.power_columns = {"energy_kWh"}, .time_column = "t_s"}),
              HasSubstr("in: column 'energy_kWh' is in kWh, which is no unit of power"));
}

// Else a total would count the cores twice.
TEST(NamedCsv, CoresArePartOfTheirPackage) {
  const auto parents = [](const std::vector<std::string>& devices) {
    std::string header = "t_s", row;
    ImportOptions options{.power_columns = {}, .time_column = "t_s"};
    for (const std::string& device : devices) {
      header += ",p" + device;
      row += ",10";
      options.power_columns.push_back(device + "=p" + device + ":W");
    }
    const auto recording = import_text(header + "\n0" + row + "\n1" + row + "\n", options);
    std::map<std::string, std::string> found;
    for (const auto& d : recording->domains) {
      const auto* outer = d.parent ? &recording->domains[static_cast<std::size_t>(*d.parent)] : &d;
      if (outer != &d) found[d.device] = outer->device;
    }
    return found;
  };
  using Parents = std::map<std::string, std::string>;
  EXPECT_EQ(parents({"cpu", "cores", "uncore", "dram", "psys"}),
            (Parents{{"cores", "cpu"}, {"uncore", "cpu"}, {"cpu", "psys"}, {"dram", "psys"}}));
  EXPECT_EQ(parents({"package-0", "package-1", "cores-1"}), (Parents{{"cores-1", "package-1"}}));
  EXPECT_EQ(parents({"package-0", "cores"}), (Parents{{"cores", "package-0"}}));
  EXPECT_EQ(parents({"gpu0", "gpus", "package-0"}), (Parents{{"gpu0", "gpus"}}));
}

TEST(NamedCsv, EachDeviceHasAColumnOfItsOwn) {
  const auto import = [](const std::string& header, std::vector<std::string> columns) {
    return import_text(header + "\n0,100,200\n1,100,200\n2,100,200\n",
                       {.power_columns = std::move(columns), .time_column = "t_s"});
  };
  const auto error = [&](const std::string& header, std::vector<std::string> columns) {
    const auto recording = import(header, std::move(columns));
    return recording ? "" : recording.error().message;
  };
  EXPECT_THAT(error("t_s,a,b", {"gpu0=a:W", "gpu1=a:W"}),
              HasSubstr("in: column 'a' is named for gpu0 and for gpu1"));
  EXPECT_THAT(error("t_s,a (W),a (mW)", {"a"}),
              HasSubstr("in: 'a' may be each of 'a (W)', 'a (mW)'; name one of them in full"));
  EXPECT_THAT(error("t_s,a,a", {"a:W"}), HasSubstr("'a' may be each of 'a', 'a'"));
  const auto exact = import("t_s,a (mW),a", {"a:W"});
  EXPECT_NEAR(joules(exact), 400, 1e-9);
}

TEST(NamedCsv, ALogThatBeginsWithTheNewestRowIsTurned) {
  const auto recording = import_text("t,p (W)\n3,100\n2,10\n1,10\n0,10\n",
                                     {.power_columns = {"p"}, .time_column = "t"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->readings.powers.back().power, Power::watts(100));
  EXPECT_NEAR(joules(recording), 75, 1e-9);
  EXPECT_TRUE(has_warning(*recording, "begins with its newest row"));
}

TEST(NamedCsv, UnitsSeparatorsAndRowsOfDevices) {
  auto recording =
      import_text("t_ms;p\n0;80,5\n500;80,5\n", {.power_columns = {"p:W"}, .time_column = "t_ms"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules(recording), 40.25, 1e-9);
  recording =
      import_text("sec\tcard\tdraw\n0\t0\t7000\n0\t1\t9000\n2\t0\t7000\n2\t1\t9000\n",
                  {.power_columns = {"draw:mW"}, .time_column = "sec", .device_column = "card"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules(recording, "gpu0"), 14, 1e-9);
  EXPECT_NEAR(joules(recording, "gpu1"), 18, 1e-9);
  recording = import_text("p\n10\n10\n10\n", {.interval = seconds{5}, .power_columns = {"p"}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules(recording), 100, 1e-9);
  EXPECT_TRUE(has_warning(*recording, "column 'p' is taken to be in watts"));
}

TEST(OwnCsv, ExportsAndMonitorsAreRead) {
  const auto power = import_text(
      "time_unix_seconds,time_seconds,device,domain,sensor,power_watts\n"
      "1772420400.0,0.0,gpu0,gpu,nvmlDeviceGetSamples,200\n"
      "1772420400.5,0.5,gpu0,gpu,nvmlDeviceGetSamples,200\n"
      "1772420401.0,1.0,gpu0,gpu,nvmlDeviceGetSamples,200\n");
  ASSERT_TRUE(power) << power.error().message;
  EXPECT_NEAR(joules(power), 200, 1e-9);
  EXPECT_EQ(power->sensors.at(0).kind, model::SensorKind::kPowerRing);
  const auto counter = import_text(
      "time_unix_seconds,time_seconds,device,domain,sensor,read_seconds,energy_joules\n"
      ",0.0,package-0,cpu,powercap,0.001,10\n,1.0,package-0,cpu,powercap,0.001,60\n");
  ASSERT_TRUE(counter) << counter.error().message;
  ASSERT_EQ(counter->readings.counters.size(), 2u);
  EXPECT_EQ(counter->domains.at(0).kind, model::DomainKind::kCpu);
  EXPECT_TRUE(counter->clock_points.empty());
  const auto monitor = import_text(
      "time,time_unix_seconds,elapsed_seconds,domain,device,name,provenance,energy_joules,"
      "power_watts,temperature_celsius,clock_limits,age_seconds\n"
      "2026-03-02T03:00:00Z,1772420400.0,0.0,gpu,gpu0,Some GPU,simulated,0,,40,,0.1\n"
      "2026-03-02T03:00:01Z,1772420401.0,1.0,gpu,gpu0,Some GPU,simulated,150,150,40,,0.1\n");
  ASSERT_TRUE(monitor) << monitor.error().message;
  EXPECT_EQ(monitor->readings.counters.back().total, Energy::joules(150));
  EXPECT_EQ(monitor->domains.at(0).name, "Some GPU");
  EXPECT_TRUE(model::is_simulated(*monitor));
}

// Readings begin before the work and end after it.
TEST(OwnCsv, TheWorkAndTheProductAreThoseOfTheExportedRecording) {
  std::string text =
      "time_unix_seconds,time_seconds,device,domain,sensor,power_watts,provenance,name,"
      "work_begin_unix_seconds,work_end_unix_seconds\n";
  for (int i = 0; i <= 10; ++i) {
    text += fmt::format(
        "{}.0,{}.0,gpu0,gpu,nvmlDeviceGetSamples,{},measured,NVIDIA H200,1772420402.5,"
        "1772420407.0\n",
        1772420400 + i, i - 2, i < 3 || i > 7 ? 100 : 500);
  }
  const auto log = import_text(text);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(*log->run.work_end - *log->run.work_begin, std::chrono::milliseconds{4500});
  EXPECT_EQ(*log->run.work_begin - log->readings.powers.front().at,
            std::chrono::milliseconds{2500});
  EXPECT_EQ(log->domains.at(0).name, "NVIDIA H200");
  EXPECT_EQ(log->sensors.at(0).traits.scale, model::scale_of_gpu("NVIDIA H200"));
}

TEST(OwnCsv, TheErrorIsThatOfTheKindOfSensor) {
  const auto log = import_text(
      "time_unix_seconds,device,domain,sensor,power_watts,provenance\n"
      "1772420400.0,package-0,cpu,model,8,estimated\n1772420400.0,dram-0,dram,rapl,8,measured\n"
      "1772420401.0,package-0,cpu,model,8,estimated\n1772420401.0,dram-0,dram,rapl,8,measured\n");
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->sensors.size(), 2u);
  EXPECT_EQ(log->sensors[0].traits.scale, model::ScaleError::symmetric(0.6));
  EXPECT_EQ(log->sensors[1].traits.scale, model::scale_of_rapl_dram());
}

// A spreadsheet may have turned the columns round: the time since 1970 counts, and not the one that
// counts from the begin.
TEST(OwnCsv, TheOrderOfItsColumnsChangesNothing) {
  const auto turned = import_text(
      "power_watts,sensor,domain,device,time_seconds,time_unix_seconds\n"
      "200,nvmlDeviceGetSamples,gpu,gpu0,0.0,1772420400.0\n"
      "200,nvmlDeviceGetSamples,gpu,gpu0,1.0,1772420401.0\n");
  ASSERT_TRUE(turned) << turned.error().message;
  EXPECT_NEAR(joules(turned), 200, 1e-9);
  ASSERT_FALSE(turned->clock_points.empty());
  EXPECT_EQ(turned->clock_points.front().real, RealTime{std::chrono::seconds{1772420400}});
}

TEST(NamedCsv, TwoTimeColumnsOfOneNameAreRefused) {
  EXPECT_THAT(import_error("time [s],time [ms],board\n0,0,100\n1,1000,100\n2,2000,100\n",
                           {.power_columns = {"gpu0=board:W"}, .time_column = "time"}),
              HasSubstr("'time' may be each of 'time [s]', 'time [ms]'"));
}

TEST(Rows, ARowThatIsWrittenOnePlaceTooLateIsPutInPlace) {
  std::vector<std::string> lines;
  for (int i = 0; i < 30; ++i) {
    lines.push_back(fmt::format("2026/08/17 22:35:{:02}.250, 0, {}.00 W\n", i, 100 + i % 3));
  }
  const auto import = [&] {
    return import_text(fmt::format("timestamp, index, power.draw [W]\n{}", fmt::join(lines, "")));
  };
  const auto right = import();
  std::swap(lines[20], lines[21]);
  const auto late = import();
  ASSERT_TRUE(right && late);
  EXPECT_NEAR(joules(late), joules(right), 1e-9);
  EXPECT_TRUE(has_warning(*late, "1 row out of the order of its times put in place"));
}

TEST(Rows, ALogWithoutAPowerThatCountsSaysWhy) {
  const std::string head = "timestamp, index, power.draw [W]\n";
  EXPECT_THAT(import_error(head + "0.0, 0, [N/A]\n1.0, 0, [N/A]\n"),
              HasSubstr("power.draw has no value in any of 2 rows"));
  EXPECT_THAT(import_error(head + "0.0, 0, -1.00 W\n1.0, 0, -1.00 W\n"),
              HasSubstr("2 values left out: the file holds an impossible power of -1 W"));
}

TEST(Rows, AGpuThatIsLostLeavesTheOther) {
  std::string text = "# gpu   pwr gtemp\n# Idx     W     C\n";
  for (int i = 0; i < 20; ++i) {
    text += "0 100 40\n";
    if (i < 8) text += "1 200 50\n";
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules(recording), 1900, 1e-9);
  EXPECT_NEAR(joules(recording, "gpu1"), 1400, 1e-9);
}

TEST(Rows, ACompressedLogIsUnpacked) {
  const TempTree tree{
      {"log.csv.gz", gzip_text("timestamp, index, power.draw [W]\n0.0, 0, 100\n2.0, 0, 100\n")}};
  const auto recording = import_files({tree / "log.csv.gz"});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(joules(recording), 200, 1e-9);
}

TEST(Rows, ARowOfASecondThatStandsThereTwiceIsLeftOut) {
  std::string text = "timestamp, index, power.draw [W]\n", last;
  for (int i = 0; i < 20; ++i) {
    last = fmt::format("2026/08/17 22:35:{:02}, 0, {}.00 W\n", i, 100 + i % 3);
    text += last;
  }
  const auto once = import_text(text), twice = import_text(text + last);
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(twice->run.work_end, once->run.work_end);
  EXPECT_TRUE(has_warning(*twice, "1 row left out that stands in the log twice"));
}

// A run reads a counter often at its ends, and seldom between them.
TEST(OwnCsv, AnExportedCounterCountsWhileItIsNotRead) {
  std::string text =
      "time_unix_seconds,time_seconds,device,domain,sensor,read_seconds,energy_joules\n";
  for (const double t : {0.0, 0.02, 0.04, 0.06, 0.08, 10.0, 20.0, 30.0, 30.02, 30.04, 30.06}) {
    text += fmt::format("{:.3f},{:.3f},gpu0,gpu,nvmlDeviceGetTotalEnergyConsumption,0.003,{:.3f}\n",
                        1772420400 + t, t, 1000 + 250 * t);
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.work_end, HostTime{std::chrono::milliseconds{30060}});
  EXPECT_FALSE(has_warning(*recording, "paused"));
}

TEST(OwnCsv, TablesOfFiguresAreRefusedByTheirName) {
  for (const char* table :
       {"name,begin_unix_seconds,begin_seconds,duration_seconds,device,domain,energy_joules,"
        "interval_low_joules,interval_high_joules,repeatability_joules,provenance,reason,labels\n"
        "step,,0,1,gpu0,gpu,10,9,11,0.1,simulated,,\n",
        "domain,device,name,energy_joules,interval_low_joules,interval_high_joules,provenance\n"
        "gpu,gpu0,Some GPU,10,9,11,estimated\n",
        "pid,own_pid,name,provenance,energy_joules\n12,12,python,estimated,3\n"}) {
    EXPECT_THAT(import_error(table), testing::HasSubstr("they would lose their intervals"));
  }
}

const std::string kPerunHead =
    ",run id,hostname,device_group,sensor,unit,magnitude,timestep,value\n";

TEST(Perun, EachSensorIsReadInItsUnit) {
  const auto log = import_text(kPerunHead +
                               "0,0,node7,gpu,CUDA:1,W,0.001,0.0,200000\n"
                               "1,0,node7,gpu,CUDA:1,W,0.001,1.0,200000\n"
                               "2,0,node7,gpu,CUDA:1,W,0.001,2.0,200000\n"
                               "3,0,node7,cpu,cpu_0_package-0,J,1e-06,0.0,5000000\n"
                               "4,0,node7,cpu,cpu_0_package-0,J,1e-06,1.0,65000000\n"
                               "5,0,node7,cpu,cpu_0_package-0,J,1e-06,2.0,125000000\n"
                               "6,0,node7,ram,ram_0_dram,J,1e-06,0.0,1000000\n"
                               "7,0,node7,ram,ram_0_dram,J,1e-06,2.0,9000000\n"
                               "8,0,node7,cpu,CPU_UTIL,%,1.0,0.0,64.8\n");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_NEAR(joules(log, "gpu1"), 400, 1e-9);
  ASSERT_EQ(log->domains.size(), 3u);
  EXPECT_EQ(log->domains[1].device, "package-0");
  EXPECT_EQ(log->domains[1].kind, model::DomainKind::kCpu);
  EXPECT_EQ(log->domains[2].device, "dram-0");
  EXPECT_EQ(log->domains[2].kind, model::DomainKind::kDram);
  const auto& counters = log->readings.counters;
  EXPECT_EQ(counters.size(), 5u);
  EXPECT_TRUE(has_warning(*log, "1 row in '%' left out"));
  EXPECT_TRUE(log->clock_points.empty());
}

TEST(Perun, RunsFollowEachOtherAndMachinesAreApart) {
  const std::string first =
      "0,0,a,gpu,CUDA:0,W,0.001,0.0,100000\n1,0,a,gpu,CUDA:0,W,0.001,1.0,100000\n";
  const auto runs = import_text(kPerunHead + first +
                                "2,1,a,gpu,CUDA:0,W,0.001,0.0,300000\n"
                                "3,1,a,gpu,CUDA:0,W,0.001,1.0,300000\n");
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_NEAR(joules(runs, "gpu0"), 400, 1e-3);
  EXPECT_TRUE(has_warning(*runs, "paused 1 time"));
  EXPECT_THAT(import_error(kPerunHead + first + "2,0,b,gpu,CUDA:0,W,0.001,0.0,300000\n"),
              HasSubstr("the readings of 2 machines"));
  const auto bad = import_text(kPerunHead + first + "2,0,a,gpu,CUDA:0,W,0,2.0,1\n");
  ASSERT_TRUE(bad) << bad.error().message;
  EXPECT_TRUE(has_warning(*bad, "1 row left out that cannot be right"));
}

// Two rows in one line had more rails than any other: all that followed were left out.
TEST(Tegrastats, ARowThatRunsIntoTheNextIsLeftOutAlone) {
  const auto row = [](int second) {
    return fmt::format(
        "03-02-2026 03:00:{:02} RAM 2448/7772MB (lfb 1x4MB) CPU [1%@729] VDD_IN 5000mW/5000mW "
        "VDD_CPU_CV 2000mW/2000mW",
        second);
  };
  for (const std::size_t kept : {row(3).size(), row(3).size() - 4, row(3).find(" VDD_IN")}) {
    std::string text;
    for (int second = 0; second < 10; ++second) {
      text += second == 3 ? row(3).substr(0, kept) + " " : row(second) + "\n";
    }
    const auto log = import_text(text);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_NEAR(joules(log, "tegra:VDD_IN"), 45, 1e-9) << kept;
    EXPECT_EQ(powers_of(*log, "tegra:VDD_IN").size(), 8u) << kept;
    EXPECT_TRUE(has_warning(*log, "1 row left out that cannot be right; the first is line 4"));
  }
}

TEST(Tegrastats, RailsBecomeDevices) {
  const std::string rest =
      " RAM 2448/7772MB (lfb 1x4MB) SWAP 0/3886MB CPU [1%@729,0%@729] GR3D_FREQ 0% ";
  const auto dated = import_text("03-02-2026 03:00:00" + rest +
                                 "VDD_IN 4900mW/4900mW VDD_CPU_GPU_CV 600mW/600mW\n"
                                 "03-02-2026 03:00:01" +
                                 rest + "VDD_IN 5100mW/5000mW VDD_CPU_GPU_CV 800mW/700mW\n");
  ASSERT_TRUE(dated) << dated.error().message;
  EXPECT_EQ(dated->run.source, "import:tegrastats");
  EXPECT_NEAR(joules(dated, "tegra:VDD_IN"), 5, 1e-9);
  EXPECT_NEAR(joules(dated, "tegra:VDD_CPU_GPU_CV"), 0.7, 1e-9);
  for (const auto& sensor : dated->sensors) {
    EXPECT_DOUBLE_EQ(sensor.traits.scale.offset_high.watts(), 0.1);  // of the rail's chip
  }
  const auto other = import_text("03-02-2026 03:00:00" + rest +
                                 "VDD_IN 4900mW/4900mW VDD_SOC 600mW/600mW\n03-02-2026 03:00:01" +
                                 rest + "VDD_IN 5100mW/5000mW VDD_SOC 800mW/700mW\n");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(has_warning(*other, "1 rail left out that is neither of the GPU, "));
  EXPECT_TRUE(has_warning(*other, "VDD_IN is the power of the whole module"));
  EXPECT_TRUE(has_warning(*other, "VDD_SOC"));
  EXPECT_EQ(dated->domains.at(0).kind, model::DomainKind::kPlatform);
  const auto older = import_text(
      "RAM 2448/3964MB (lfb 1x4MB) CPU [1%@729] POM_5V_IN 2500/2500 POM_5V_GPU 120/120\n"
      "RAM 2448/3964MB (lfb 1x4MB) CPU [1%@729] POM_5V_IN 2500/2500 POM_5V_GPU 120/120\n",
      {.interval = seconds{2}});
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_NEAR(joules(older, "gpu0"), 0.24, 1e-9);
  EXPECT_TRUE(has_warning(*older, "POM_5V_IN is the power of the whole module"));
  const std::string orin = rest + "VDD_GPU_SOC {0}/{0} VIN_SYS_5V0 4000mW/4000mW\n";
  const auto without = import_text(fmt::format(
      fmt::runtime("03-02-2026 03:00:00" + orin + "03-02-2026 03:00:01" + orin), "900mW"));
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_FALSE(has_warning(*without, "VDD_IN"));
  EXPECT_FALSE(has_warning(*without, "is the power of the whole module"));
  EXPECT_THAT(import_error(fmt::format(
                  fmt::runtime("03-02-2026 03:00:00" + orin + "03-02-2026 03:00:01" + orin), "9W")),
              HasSubstr("line 1: none of its words is a known rail with a power in mW after it"));
  const auto thor = import_text(
      "03-02-2026 03:00:00" + rest +
      "VDD_GPU 3000mW/3000mW VDD_CPU_SOC_MSS 6500mW/6500mW VIN 21000mW/21000mW\n"
      "03-02-2026 03:00:02" +
      rest + "VDD_GPU 3000mW/3000mW VDD_CPU_SOC_MSS 6500mW/6500mW VIN 21000mW/21000mW\n");
  ASSERT_TRUE(thor) << thor.error().message;
  EXPECT_NEAR(joules(thor, "gpu0"), 6, 1e-9);
  EXPECT_NEAR(joules(thor, "tegra:VIN"), 42, 1e-9);
  for (const auto& domain : thor->domains) EXPECT_NE(domain.kind, model::DomainKind::kCpu);
}

using std::chrono::milliseconds;

TEST(NamedCsv, RowsHaveTheTimesOfTheColumnThatIsCalledSo) {
  const auto rows = [](std::string_view head) {
    return fmt::format("{}\n0.0,9,100\n0.1,9,100\n0.2,9,100\n0.3,9,100\n", head);
  };
  for (const char* const head : {"time,x,p_w", "Timestamp [s],x,p_w"}) {
    const auto recording = import_text(rows(head), {.power_columns = {"p_w"}});
    ASSERT_TRUE(recording) << head << recording.error().message;
    EXPECT_NEAR(joules(recording, "gpu0"), 30, 1e-6) << head;  // and not 300 J, in steps of 1 s
  }
  EXPECT_THAT(import_error(rows("time,date,p_w"), {.power_columns = {"p_w"}}),
              HasSubstr("its times may be in each of time, date; name one with --time-column"));
  // The distance that the user gives counts.
  const auto given =
      import_text(rows("time,date,p_w"), {.interval = milliseconds{500}, .power_columns = {"p_w"}});
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_NEAR(joules(given, "gpu0"), 150, 1e-6);
}

const std::string kOmegaWatt =
    "opening /dev/ttyUSB0\n"
    "#timestamp,#frame_is_ok,#U1,#current1,#activepow1,#current2,#activepow2\n"
    "1671527189.29,false,,,,,\n"
    "1671527189.30,true,232.3,0.1,20.0,0,0\n"
    "1671527189.40,true,232.3,0.1,30.0,0,0\n"
    "1671527189.50,true,232.3,0.1,20.0,0,0\n";

TEST(OmegaWatt, ReadsUsedSockets) {
  const auto recording = import_text(kOmegaWatt);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:omegawatt");
  ASSERT_EQ(recording->domains.size(), 1u);
  EXPECT_EQ(recording->domains[0].kind, model::DomainKind::kPlatform);  // in no total
  EXPECT_NEAR(trapezoid(powers_of(*recording, "socket1")), 5, 1e-6);
  EXPECT_EQ(recording->clock_points.front().real,
            RealTime{std::chrono::seconds{1671527189} + milliseconds{300}});
  EXPECT_TRUE(has_warning(
      *recording, "1 line left out that is no row of wattmetre-read, or that it marks as bad"));
  EXPECT_TRUE(has_warning(*recording, "1 of 2 sockets left out"));
}

TEST(OmegaWatt, BadLogs) {
  EXPECT_TRUE(has_warning(*import_text(kOmegaWatt + "1671527189.60,true,1\n"),
                          "line 7: 3 fields under a header of 7"));
  EXPECT_TRUE(has_warning(*import_text(kOmegaWatt + "now,true,1,1,1,1,1\n"), "'now' is no time"));
  EXPECT_THAT(import_error("#timestamp,#frame_is_ok,#U1\n1,true,2\n"), HasSubstr("#activepow1"));
}

}  // namespace
}  // namespace jouleprof::importers
