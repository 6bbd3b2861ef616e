#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/importers_fixture.h"

namespace jouleprof::importers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kHead =
    "#Entity   POWER       TOTEC     TMPTR  PCIRX\n"
    "ID        W           mJ        C\n";

TEST(Dcgm, ReadsPowerAndTheEnergyCounter) {
  const auto recording =
      import_text(kHead + "GPU 0     100.5  1000000  40  7\nGPU 1     N/A  2000000  41  7\n" +
                      kHead + "GPU 0     101.5  1050500  40  7\nGPU 1     N/A  2010000  41  7\n",
                  {.interval = milliseconds{500}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:dcgmi");
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 50.5, 1e-9);
  ASSERT_EQ(recording->readings.counters.size(), 4u);
  EXPECT_EQ(recording->readings.counters[2].total - recording->readings.counters[0].total,
            Energy::joules(50.5));
  EXPECT_TRUE(recording->clock_points.empty());
  EXPECT_TRUE(has_warning(*recording, "1 column left out: 'PCIRX'"));
  EXPECT_TRUE(recording->domains[1].unavailable_reason.empty());  // its counter
}

TEST(Dcgm, ACounterInAnotherUnitIsRefused) {
  const auto log = [](double power, double millijoules, bool has_power) {
    std::string text = has_power ? "#Entity POWER TOTEC\nID W mJ\n" : "#Entity TOTEC\nID mJ\n";
    for (int i = 0; i < 20; ++i) {
      text += "GPU 0 " + (has_power ? std::to_string(power) + " " : std::string()) +
              std::to_string(static_cast<long long>(1e9 + millijoules * i)) + "\n";
    }
    return text;
  };
  EXPECT_TRUE(import_text(log(100, 1e5, true)));
  EXPECT_TRUE(import_text(log(100, 1e5, false)));
  EXPECT_THAT(import_error(log(100, 1e8, true)),
              HasSubstr("rises by 1e+05 W, where its power is 100 W: wrong unit?"));
  EXPECT_THAT(import_error(log(100, 1e2, true)), HasSubstr("rises by 0.1 W"));
  EXPECT_THAT(import_error(log(100, 1e8, false)), HasSubstr("which is above what any gpu draws"));
  EXPECT_TRUE(
      has_warning(*import_text(log(100, 1e2, false)), "gpu0 draws at most 0.1 W: wrong unit?"));
}

// Rows that are taken to be a second apart would make a tenth of the energy.
TEST(Dcgm, ACounterRefutesTheAssumedIntervalOfRowsWithoutTimes) {
  const auto log = [](int step, double power) {
    std::string text = kHead;
    for (int i = 0; i < 20; ++i) {
      text += fmt::format("GPU 0     {}  {}  40  7\n", i == 3 ? "N/A" : fmt::format("{}", power),
                          5'000'000 + i * step * 100'000);
    }
    return text;
  };
  for (const int apart : {2, 10, 60}) {
    EXPECT_THAT(import_error(log(apart, 100)),
                HasSubstr(fmt::format("about --interval {}s", apart)));
    const auto stated = import_text(log(apart, 100), {.interval = seconds{apart}});
    ASSERT_TRUE(stated) << stated.error().message;
    EXPECT_EQ(*stated->run.work_end - *stated->run.work_begin, seconds{19 * apart});
  }
  EXPECT_THAT(import_error(log(1, 1000)), HasSubstr("about --interval 0.1s"));
  EXPECT_TRUE(import_text(log(1, 120)));
}

// Nearly all of the energy is in one of twenty seconds.
TEST(Dcgm, ABoardThatRestsBetweenBurstsIsNoWrongUnit) {
  std::string text = "#Entity POWER TOTEC\nID W mJ\n";
  long long total = 5'000'000;
  for (int i = 0; i < 40; ++i) {
    const int watts = i == 20 || i == 21 ? 700 : 1;
    total += 1000 * watts;
    text += "GPU 0 " + std::to_string(watts) + " " + std::to_string(total) + "\n";
  }
  EXPECT_TRUE(import_text(text));
}

TEST(Dcgm, InstancesOfGpusAreNamedAndLeftOut) {
  const auto recording = import_text(
      "# Entity  POWER\n      Id  W\nGPU 0  100\nGPU-I 3  40\nGPU 0  100\nGPU-I 3  41\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->domains.size(), 1u);
  EXPECT_TRUE(has_warning(*recording, "2 rows of 'GPU-I' left out"));
  EXPECT_THAT(import_error("#Entity POWER\nID W\nGPU-I 3 40\nGPU-I 4 41\n"),
              HasSubstr("rows of 'GPU-I' only, and none of a whole GPU"));
}

TEST(Dcgm, ProductNamesHaveBlanks) {
  const auto recording = import_text(
      "# Entity  NVIDX  DVNAM  POWER\nGPU 0  0  Tesla V100 SXM2  45.7\nGPU 0  0  Tesla V100 SXM2  "
      "45.7\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 45.7, 1e-9);
}

TEST(Dcgm, BadLogs) {
  EXPECT_THAT(import_error(kHead), HasSubstr("no row under it"));
  EXPECT_THAT(import_error(kHead + "GPU 0 1 2\n"), HasSubstr("3 fields under a header of 5"));
  EXPECT_THAT(import_error(kHead + "GPU 0 a 2 3 4\n"), HasSubstr("'a' is no number"));
  EXPECT_THAT(import_error("#Entity TMPTR\nGPU 0 40\nGPU 0 40\n"),
              HasSubstr("neither POWER nor TOTEC"));
  EXPECT_THAT(import_error("#Entity POWER\nID J\nGPU 0 40\n"), HasSubstr("'POWER' is in 'J'"));
  EXPECT_THAT(import_error("#Entity POWER PCIRX\nID mW\nGPU 0 40 7\n"),
              HasSubstr("'POWER' is in 'W', which is not among these units"));
  const auto milli = import_text("#Entity POWER\nID mW\nGPU 0 40000\nGPU 0 40000\n");
  ASSERT_TRUE(milli) << milli.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*milli, "gpu0")), 40, 1e-9);
}

// The name took all of the next row, which was lost without a word.
TEST(Dcgm, ARowThatRunsIntoTheNextIsLeftOutAndCounted) {
  const std::string row = "GPU 0     NVIDIA H100 80GB HBM3     200.000\n";
  for (const std::string cut : {"GPU 0     NVIDIA H100 80GB HBM3     20", "GPU 0     NVIDIA H1",
                                "GPU 0     NVIDIA H100 80GB HBM3     200.000 "}) {
    const auto log = import_text("#Entity   DVNAM     POWER\nID                  W\n" + row + cut +
                                 row + row + row);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(powers_of(*log, "gpu0").size(), 3u) << cut;
    EXPECT_TRUE(has_warning(*log, "left out")) << cut;
  }
}

}  // namespace
}  // namespace jouleprof::importers
