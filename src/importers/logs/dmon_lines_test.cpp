#include "importers/logs/dmon_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "importers/importers_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

namespace gauge = model::gauge;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::map<std::string, double> first_values(const model::Recording& recording) {
  std::map<std::string, double> values;
  for (const auto& g : recording.readings.gauges) {
    values.emplace(recording.sensors[static_cast<std::size_t>(g.sensor)].name, g.value);
  }
  return values;
}

TEST(DmonLines, ALogThatIsCutWithinARepeatedHeaderKeepsWhatIsWhole) {
  const std::string rows = "# gpu pwr gtemp\n# Idx W C\n0 61 40\n0 62 40\n";
  for (const char* cut : {"#", "# gp", "# gpu pw", "# gpu pwr [W", "# gpu pwr gtemp\n# Idx",
                          "# gpu pwr gtemp\n# Idx W"}) {
    const auto recording = import_text(rows + cut);
    ASSERT_TRUE(recording) << cut << ": " << recording.error().message;
    EXPECT_EQ(recording->readings.powers.size(), 2u);
    EXPECT_TRUE(recording->run.complete);
  }
}

TEST(DmonLines, ReadsTheGenerationsOfHeaders) {
  auto recording = import_text(
      "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n"
      "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz \n"
      "    0    412     51     64     97     33      1      2      3      4   2619   1755 \n"
      "    0    412     51     64     97     33      1      2      3      4   2619   1755 \n");
  ASSERT_TRUE(recording) << recording.error().message;
  auto values = first_values(*recording);
  EXPECT_EQ(values[std::string(gauge::kMemoryTemperature)], 64);
  EXPECT_EQ(values[std::string(gauge::kOfaUtilisation)], 0.04);
  EXPECT_EQ(values[std::string(gauge::kSmClock)], 1755e6);

  // The first generation, with one temperature; bar1 is not fb.
  recording = import_text(
      "# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk pviol tviol    fb  bar1 sbecc dbecc "
      "  pci rxpci txpci\n"
      "# Idx     W     C     %     %     %     %   MHz   MHz     %  bool    MB    MB  errs  errs "
      " errs  MB/s  MB/s\n"
      "    3    97    71    24     6     0     0  4513  1670     0     0 11000     5     -     - "
      "    0    40     7\n"
      "    3    97    71    24     6     0     0  4513  1670     0     0 11000     5     -     - "
      "    0    40     7\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->domains.at(0).device, "gpu3");
  values = first_values(*recording);
  EXPECT_EQ(values[std::string(gauge::kTemperature)], 71);
  EXPECT_FALSE(values.contains(std::string(gauge::kMemoryTemperature)));
  EXPECT_EQ(values[std::string(gauge::kMemoryUsed)], 11000.0 * 1048576);
}

TEST(DmonLines, ARepeatedHeaderMayHaveOtherColumns) {
  const auto recording = import_text(
      "# gpu pwr sm\n# Idx W %\n 0 61 5\n"
      "# gpu sm pwr\n# Idx % W\n 0 6 62\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->readings.powers.size(), 2u);
  EXPECT_EQ(recording->readings.powers[1].power.watts(), 62);
}

TEST(DmonLines, ReadsDatesAndTimes) {
  auto recording = import_text(
      "#Date        Time         gpu    pwr     sm\n"
      "#YYYYMMDD    HH:MM:SS     Idx      W      %\n"
      " 20261121    03:13:59       0     61      0\n 20261121    03:14:00       0     61      0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->clock_points.at(0).real,
            RealTime{instants_of(Duration{std::chrono::seconds{1795230839}}).first});
  // Without a date, over midnight.
  recording = import_text(
      "#Time         gpu    pwr\n#HH:MM:SS     Idx      W\n"
      " 23:59:59       0     61\n 00:00:01       0     62\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin,
            Duration{std::chrono::seconds{2}});
  EXPECT_TRUE(recording->clock_points.empty());
  // A date alone is no stamp.
  recording = import_text("#Date gpu pwr\n#YYYYMMDD Idx W\n 20261121 0 61\n 20261121 0 61\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "no time stamps"));
}

TEST(DmonLines, UnitsAreThoseThatAreWritten) {
  for (const char* text :
       {"#gpu, pwr, sm, pclk\n#Idx, W, %, MHz\n0, 61, 7, 210\n0, 61, 7, 210\n",
        "# gpu,pwr,sm,pclk\n0,61,7,210\n0,61,7,210\n",
        "gpu, pwr [W], sm [%], pclk [MHz]\n0, 61 W, 7 %, 210 MHz\n0, 61 W, 7 %, 210 MHz\n",
        "# gpu pwr sm pclk\n# Idx mW % MHz\n 0 61000 7 210\n 0 61000 7 210\n",
        "gpu, pwr [mW], sm [%], pclk [GHz]\n0, 61000, 7, 0.21\n0, 61 W, 7, 0.21\n"}) {
    const auto recording = import_text(text);
    ASSERT_TRUE(recording) << text << recording.error().message;
    EXPECT_EQ(recording->readings.powers.at(0).power.watts(), 61) << text;
    EXPECT_EQ(first_values(*recording)[std::string(gauge::kSmClock)], 210e6) << text;
  }
  EXPECT_THAT(import_error("# gpu pwr\n# Idx C\n 0 61\n"),
              AllOf(HasSubstr("in, line 2"), HasSubstr("no unit of it")));
}

TEST(DmonLines, WhatIsNoLogIsRefused) {
  const std::string head = "# gpu pwr\n# Idx W\n 0 61\n 0 62\n";
  EXPECT_THAT(import_error("0, 61, 36, 52, 0, 0\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("noheader")));
  EXPECT_THAT(import_error(head + "# gpu pid type sm\n"), HasSubstr("pmon"));
  EXPECT_THAT(import_error(head + "#Time gpu pwr\n"), HasSubstr("other time columns"));
  EXPECT_THAT(import_error("# gpu mig pwr\n"), HasSubstr("MIG"));
  EXPECT_THAT(import_error("#\n!\n", {.format = "dmon"}), HasSubstr("no row under it"));
}

TEST(DmonLines, BadRowsAreLeftOutAndCounted) {
  const std::string head = "# gpu pwr\n# Idx W\n 0 61\n 0 62\n";
  for (const auto& [row, why] :
       {std::pair{"{\"date\": 1}\n", "line 5: '{\"date\":' is no GPU index"},
        {" 0 61 5\n",
         "line 5: 3 fields under a "
         "header of 2"},
        {" 0 many\n", "line 5: 'many' is no number"},
        {" -1 61\n", "line 5: '-1' is no GPU index"}}) {
    const auto recording = import_text(head + row);
    ASSERT_TRUE(recording) << row << recording.error().message;
    EXPECT_EQ(recording->readings.powers.size(), 2u);
    EXPECT_TRUE(has_warning(*recording, "1 row left out")) << row;
    EXPECT_TRUE(has_warning(*recording, why)) << row;
  }
  EXPECT_THAT(import_error("#Date Time gpu pwr\n 20261301 00:00:00 0 61\n"), HasSubstr("no date"));
  EXPECT_THAT(import_error("#Date Time gpu pwr\n 20261121 25:00:00 0 61\n"),
              HasSubstr("no time of day"));
}

TEST(DmonLines, TakesTheSectionsOutOfACapture) {
  const std::string capture =
      "####\n# idle :: pmon\n# $ nvidia-smi pmon\n####\n"
      "# gpu         pid   type     sm    mem    command \n"
      "# Idx           #    C/G      %      %    name \n"
      "    0          -     -      -      -    - \n\n"
      "timestamp, gpu_name, power\n2026/11/21 03:13:59.000, NVIDIA X, 61 W\n"
      "####\n# idle :: dmon\n####\n"
      "# gpu    pwr     sm \n# Idx      W      % \n    0     61      0 \n    0     62      0 \n\n"
      "17 18 19\nSome text: 0 1 2\n"
      "# load :: dmon\n"
      "# gpu    pwr     sm \n# Idx      W      % \n    0    261     99 \n    0    262     99 \n"
      "nvmlDeviceGetName\n    0    999     99 \n";
  EXPECT_THAT(import_error(capture, {.format = "dmon"}), HasSubstr("2 blocks of dmon rows"));
  auto recording = import_text(capture, {.format = "dmon", .block = 1});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(powers_of(*recording, "gpu0").back().power.watts(), 62);
  EXPECT_TRUE(has_warning(*recording, "1 row of pmon left out"));
  recording = import_text(capture, {.format = "dmon", .block = 2});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->readings.powers.size(), 2u);
  EXPECT_EQ(powers_of(*recording, "gpu0").back().power.watts(), 262);
}

TEST(DmonLines, OtherTextsHaveNoHeader) {
  EXPECT_FALSE(parse_dmon_header("layer,exec_id,duration_ms"));
  EXPECT_FALSE(parse_dmon_header("# gpu capture"));
  EXPECT_FALSE(parse_dmon_header("{\"gpu\": 1}"));
  EXPECT_TRUE(parse_dmon_header("# gpu pid type sm")->is_pmon);
}

// sm in percent, clock, GPU.
struct Seen {
  std::optional<double> sm;
  std::optional<double> clock;
  std::size_t gpu = 0;
};

DmonActivity find(std::initializer_list<std::vector<Seen>> seen) {
  std::vector<Look> looks;
  for (const auto& look : seen) {
    looks.emplace_back();
    for (const Seen& gpu : look) {
      looks.back().push_back(
          {gpu.gpu, gpu.sm ? std::optional(*gpu.sm / 100) : std::nullopt, gpu.clock});
    }
  }
  return find_activity(looks);
}

TEST(DmonActivity, WorkIsTrimmedByOneLookOnEachSide) {
  const auto found = find({{{0, 210}},
                           {{0, 210}},
                           {{0, 900}},
                           {{30, 900}},
                           {{80, 900}},
                           {{10, 900}},
                           {{80, 900}},
                           {{31, 900}},
                           {{29, 900}},
                           {{0, 210}}});
  EXPECT_EQ(found.idle_looks, 2u);
  EXPECT_EQ(found.work, (LookRange{4, 6}));
}

TEST(DmonActivity, ShortWorkIsNotTrimmed) {
  EXPECT_EQ(find({{{0, 210}}, {{80, 900}}, {{80, 900}}}).work, (LookRange{1, 2}));
  EXPECT_EQ(find({{{80, 900}}, {{80, 900}}, {{80, 900}}}).work, (LookRange{1, 1}));
}

TEST(DmonActivity, ALogThatIsIdleThroughoutHasNoWork) {
  const auto found = find({{{0, 210}}, {{0, 210}}});
  EXPECT_EQ(found.idle_looks, 2u);
  EXPECT_EQ(found.work, std::nullopt);
}

TEST(DmonActivity, ClocksThatNeverFellAreNotIdle) {
  EXPECT_EQ(find({{{0, 800}}, {{0, 800}}, {{80, 900}}}).idle_looks, 0u);
}

TEST(DmonActivity, AllGpusHaveToBeIdleAndAnyMakesItActive) {
  const auto found = find({{{0, 210, 0}, {0, 345, 1}},
                           {{0, 210, 0}, {0, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{50, 900, 0}, {0, 345, 1}}});
  EXPECT_EQ(found.idle_looks, 1u);
  EXPECT_EQ(found.work, (LookRange{3, 3}));
}

TEST(DmonActivity, WithoutUtilisationNothingIsKnown) {
  const auto found = find({{{std::nullopt, 210}}, {{std::nullopt, 900}}});
  EXPECT_EQ(found.idle_looks, 0u);
  EXPECT_EQ(found.work, std::nullopt);
  EXPECT_EQ(find({{{0, std::nullopt}}}).idle_looks, 0u);
}

}  // namespace
}  // namespace jouleprof::importers
