#include "importers/dmon/dmon_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace jouleprof::importers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<DmonLog> read(std::string text) { return read_dmon_log({"x.log", std::move(text)}); }

std::string error_of(std::string text) {
  const auto log = read(std::move(text));
  EXPECT_FALSE(log);
  return log ? "" : log.error().message;
}

TEST(DmonLog, ALogThatIsCutWithinARepeatedHeaderKeepsWhatIsWhole) {
  const std::string rows = "# gpu pwr gtemp\n# Idx W C\n0 61 40\n0 62 40\n";
  for (const char* cut : {"#", "# gp", "# gpu pw", "# gpu pwr [W", "# gpu pwr gtemp\n# Idx",
                          "# gpu pwr gtemp\n# Idx W"}) {
    const auto log = read(rows + cut);
    ASSERT_TRUE(log) << cut << ": " << log.error().message;
    EXPECT_EQ(log->rows.size(), 2u);
    EXPECT_TRUE(log->cut_off_line);
  }
}

TEST(DmonLog, ReadsTheThirdGenerationOfHeaders) {
  const auto log = read(
      "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n"
      "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz \n"
      "    0    412     51     64     97     33      1      2      3      4   2619   1755 \n");
  ASSERT_TRUE(log);
  ASSERT_EQ(log->rows.size(), 1u);
  const DmonRow& row = log->rows[0];
  EXPECT_EQ(row.gpu, 0);
  EXPECT_EQ(row[DmonField::kPower], 412);
  EXPECT_EQ(row[DmonField::kTemperature], 51);
  EXPECT_EQ(row[DmonField::kMemoryTemperature], 64);
  EXPECT_EQ(row[DmonField::kSm], 97);
  EXPECT_EQ(row[DmonField::kMemory], 33);
  EXPECT_EQ(row[DmonField::kEncoder], 1);
  EXPECT_EQ(row[DmonField::kDecoder], 2);
  EXPECT_EQ(row[DmonField::kJpeg], 3);
  EXPECT_EQ(row[DmonField::kOfa], 4);
  EXPECT_EQ(row[DmonField::kMemoryClock], 2619);
  EXPECT_EQ(row[DmonField::kSmClock], 1755);
  EXPECT_EQ(row[DmonField::kFrameBuffer], std::nullopt);
  EXPECT_EQ(log->stamps, DmonStamps::kNone);
}

TEST(DmonLog, ReadsTheFirstGenerationWithItsOneTemperature) {
  const auto log = read(
      "# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk pviol tviol    fb  bar1 sbecc dbecc "
      "  pci rxpci txpci\n"
      "# Idx     W     C     %     %     %     %   MHz   MHz     %  bool    MB    MB  errs  errs "
      " errs  MB/s  MB/s\n"
      "    3    97    71    24     6     0     0  4513  1670     0     0 11000     5     -     - "
      "    0    40     7\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->rows[0].gpu, 3);
  EXPECT_EQ(log->rows[0][DmonField::kTemperature], 71);
  EXPECT_EQ(log->rows[0][DmonField::kMemoryTemperature], std::nullopt);
  EXPECT_EQ(log->rows[0][DmonField::kFrameBuffer], 11000);  // not bar1
  EXPECT_EQ(log->rows[0][DmonField::kSmClock], 1670);
}

TEST(DmonLog, FollowsTheOrderOfTheColumnsAndIgnoresUnknownOnes) {
  const auto log = read(
      "# gpu    mclk   pclk  future    pwr  gtemp  mtemp     sm    mem\n"
      "# Idx     MHz    MHz  GPM:%      W      C      C      %      %\n"
      "   12    1593    210  n/a       61     36      -      0      0\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->rows[0].gpu, 12);
  EXPECT_EQ(log->rows[0][DmonField::kPower], 61);
  EXPECT_EQ(log->rows[0][DmonField::kSmClock], 210);
  EXPECT_EQ(log->rows[0][DmonField::kMemoryTemperature], std::nullopt);
}

TEST(DmonLog, ARepeatedHeaderMayHaveOtherColumns) {
  const auto log = read(
      "# gpu pwr sm\n# Idx W %\n 0 61 5\n"
      "# gpu sm pwr\n# Idx % W\n 0 6 62\n");
  ASSERT_TRUE(log);
  ASSERT_EQ(log->rows.size(), 2u);
  EXPECT_EQ(log->rows[1][DmonField::kPower], 62);
  EXPECT_EQ(log->rows[1][DmonField::kSm], 6);
  EXPECT_TRUE(log->rows[0].starts_section);
  EXPECT_FALSE(log->rows[1].starts_section);
}

TEST(DmonLog, ReadsDateAndTime) {
  const auto log = read(
      "#Date        Time         gpu    pwr     sm\n"
      "#YYYYMMDD    HH:MM:SS     Idx      W      %\n"
      " 20261121    03:13:59       0     61      0\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->stamps, DmonStamps::kDateTime);
  EXPECT_EQ(log->rows[0].stamp, std::chrono::seconds{1795230839});
}

TEST(DmonLog, TimesWithoutDatePassMidnight) {
  const auto log = read(
      "#Time         gpu    pwr\n#HH:MM:SS     Idx      W\n"
      " 23:59:59       0     61\n 00:00:01       0     62\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->stamps, DmonStamps::kTime);
  EXPECT_EQ(*log->rows[1].stamp - *log->rows[0].stamp, std::chrono::seconds{2});
}

TEST(DmonLog, ADateWithoutTimeIsNoStamp) {
  const auto log = read("#Date gpu pwr\n#YYYYMMDD Idx W\n 20261121 0 61\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->stamps, DmonStamps::kNone);
  EXPECT_EQ(log->rows[0].stamp, std::nullopt);
}

TEST(DmonLog, ReadsCsvWithAndWithoutUnits) {
  for (const char* text :
       {"#gpu, pwr, sm, pclk\n#Idx, W, %, MHz\n0, 61, 7, 210\n", "# gpu,pwr,sm,pclk\n0,61,7,210\n",
        "gpu, pwr [W], sm [%], pclk [MHz]\n0, 61 W, 7 %, 210 MHz\n"}) {
    const auto log = read(text);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(log->rows[0][DmonField::kPower], 61) << text;
    EXPECT_EQ(log->rows[0][DmonField::kSm], 7) << text;
    EXPECT_EQ(log->rows[0][DmonField::kSmClock], 210) << text;
  }
}

TEST(DmonLog, ValuesInAnotherUnitAreAnError) {
  EXPECT_THAT(error_of("# gpu pwr\n# Idx mW\n 0 61000\n"),
              AllOf(HasSubstr("x.log, line 2"), HasSubstr("'mW', not in W")));
  EXPECT_THAT(error_of("gpu, pwr [mW]\n0, 61000\n"), HasSubstr("line 1"));
  EXPECT_THAT(error_of("gpu, pwr\n0, 61000 mW\n"), HasSubstr("line 2"));
}

TEST(DmonLog, RowsWithoutAHeaderAreAnError) {
  EXPECT_THAT(error_of("0, 61, 36, 52, 0, 0\n"), AllOf(HasSubstr("line 1"), HasSubstr("noheader")));
  EXPECT_TRUE(is_dmon("0, 61, 36, 52, 0, 0\n"));
}

TEST(DmonLog, ForeignLinesInALogAreErrors) {
  const std::string head = "# gpu pwr\n# Idx W\n 0 61\n";
  EXPECT_THAT(error_of(head + "{\"date\": 1}\n"), AllOf(HasSubstr("line 4"), HasSubstr("no row")));
  EXPECT_THAT(error_of(head + " 0 61 5\n"), HasSubstr("line 4: 3 fields under a header of 2"));
  EXPECT_THAT(error_of(head + " 0 many\n"), HasSubstr("line 4: pwr is 'many'"));
  EXPECT_THAT(error_of(head + " -1 61\n"), HasSubstr("line 4: '-1' is no GPU index"));
  EXPECT_THAT(error_of(head + "# gpu pid type sm\n"), HasSubstr("pmon"));
  EXPECT_THAT(error_of(head + "#Time gpu pwr\n"), HasSubstr("other time columns"));
  EXPECT_THAT(error_of("# gpu mig pwr\n"), HasSubstr("MIG"));
  EXPECT_THAT(error_of("#Date Time gpu pwr\n 20261301 00:00:00 0 61\n"), HasSubstr("no date"));
  EXPECT_THAT(error_of("#Date Time gpu pwr\n 20261121 25:00:00 0 61\n"),
              HasSubstr("no time of day"));
}

TEST(DmonLog, ALastLineWithoutLineEndIsLeftOut) {
  const auto log = read("# gpu pwr\n# Idx W\n 0 61\n 0 6");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->rows.size(), 1u);
  EXPECT_EQ(log->cut_off_line, 4u);
}

TEST(DmonLog, TakesTheSectionsOutOfACapture) {
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
      "# gpu    pwr     sm \n# Idx      W      % \n    0    261     99 \n"
      "nvmlDeviceGetName\n    0    999     99 \n";
  EXPECT_TRUE(is_dmon(capture));
  EXPECT_FALSE(read(capture));  // which of the two?
  const SourceText source{"in", capture};
  auto log = read_dmon_log(source, 1);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->rows.size(), 2u);
  EXPECT_EQ(log->rows[1][DmonField::kPower], 62);
  EXPECT_EQ(log->pmon_rows, 1u);
  log = read_dmon_log(source, 2);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->rows.size(), 1u);
  EXPECT_EQ(log->rows[0][DmonField::kPower], 261);
}

TEST(DmonLog, OtherTextsAreNotDmon) {
  EXPECT_FALSE(is_dmon("layer,exec_id,duration_ms\n1,2,3\n"));
  EXPECT_FALSE(is_dmon("# gpu capture\n# gpu pid type sm\n"));
  EXPECT_FALSE(is_dmon("{\"gpu\": 1}\n"));
  EXPECT_FALSE(is_dmon("word\n1 2 3\n"));
}

}  // namespace
}  // namespace jouleprof::importers
