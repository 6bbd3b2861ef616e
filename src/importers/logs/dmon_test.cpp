#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/importers_fixture.h"
#include "model/device/sensor.h"
#include "model/device/sensor_table.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kHead =
    "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n"
    "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz \n";

std::string row(int gpu, int watts, int sm, int clock) {
  return fmt::format("    {} {} 36 - {} 0 0 0 0 0 1593 {} \n", gpu, watts, sm, clock);
}

HostTime at(Duration d) { return HostTime{d}; }

TEST(Dmon, RowsWithoutStampsAreOneIntervalApart) {
  const std::string text = kHead + row(0, 61, 5, 210) + row(0, 62, 5, 210) + row(0, 63, 5, 210);
  auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:dmon");
  EXPECT_TRUE(recording->run.complete);
  EXPECT_TRUE(recording->clock_points.empty());
  EXPECT_EQ(recording->run.work_begin, at(seconds{0}));
  EXPECT_EQ(recording->run.work_end, at(seconds{2}));
  EXPECT_TRUE(has_warning(*recording, "no time stamps"));
  const auto powers = powers_of(*recording, "gpu0");
  ASSERT_EQ(powers.size(), 3u);
  EXPECT_EQ(powers[2].at, at(seconds{2}));
  EXPECT_EQ(powers[2].power.watts(), 63);

  recording = import_text(text, {.format = "dmon", .interval = seconds{5}});
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->run.work_end, at(seconds{10}));
}

TEST(Dmon, TheSensorIsAnAverageOfOneSecond) {
  const auto recording = import_text(kHead + row(0, 61, 5, 210) + row(0, 62, 5, 210));
  ASSERT_TRUE(recording);
  const model::Sensor& power = recording->sensors.front();
  EXPECT_EQ(power.kind, model::SensorKind::kPowerAverage);
  EXPECT_EQ(power.provenance, model::Provenance::kMeasured);
  EXPECT_EQ(power.traits.window, seconds{1});
  EXPECT_EQ(power.traits.scale, model::scale_of_gpu(""));
  EXPECT_TRUE(has_warning(*recording, "whole watts"));
}

TEST(Dmon, GaugesAreInSiUnits) {
  const auto recording = import_text(kHead + row(0, 61, 25, 210) + row(0, 62, 25, 210));
  ASSERT_TRUE(recording);
  std::map<std::string, double> values;
  for (const auto& gauge : recording->readings.gauges) {
    values[recording->sensors[static_cast<std::size_t>(gauge.sensor)].name] = gauge.value;
  }
  EXPECT_EQ(values.at(std::string(model::gauge::kGpuUtilisation)), 0.25);
  EXPECT_EQ(values.at(std::string(model::gauge::kSmClock)), 210e6);
  EXPECT_EQ(values.at(std::string(model::gauge::kMemoryClock)), 1593e6);
  EXPECT_EQ(values.at(std::string(model::gauge::kTemperature)), 36);
  EXPECT_FALSE(values.contains(std::string(model::gauge::kMemoryTemperature)));  // '-'
}

TEST(Dmon, FindsWorkAndIdle) {
  std::string text = kHead;
  for (int i = 0; i < 4; ++i) text += row(0, 60, 0, 210);
  text += row(0, 75, 40, 1000);
  for (int i = 0; i < 3; ++i) text += row(0, 100 + i, 99, 1000);
  text += row(0, 75, 40, 1000) + row(0, 60, 0, 210);
  auto recording = import_text(text, {.trim = true});
  ASSERT_TRUE(recording);
  // Three rows, each of the second before it.
  EXPECT_EQ(recording->run.work_begin, at(seconds{4}));
  EXPECT_EQ(recording->run.work_end, at(seconds{7}));
  ASSERT_EQ(recording->idle_spans.size(), 1u);
  EXPECT_EQ(recording->idle_spans[0], (model::IdleSpan{at(seconds{0}), at(seconds{3})}));
  EXPECT_TRUE(has_warning(*recording, "trimmed to 3 of 10 looks, from 4 s to 7 s"));
  // Three idle rows after the first, two at the edges, one idle row.
  EXPECT_TRUE(has_warning(*recording, "7 looks left out, with about 390.0 J"));

  recording = import_text(text);
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->run.work_begin, at(seconds{0}));
  EXPECT_EQ(recording->run.work_end, at(seconds{9}));
  EXPECT_EQ(recording->idle_spans.size(), 1u);
  EXPECT_FALSE(has_warning(*recording, "trimmed"));
}

TEST(Dmon, NothingIsTrimmedWithoutActiveRows) {
  const auto recording =
      import_text(kHead + row(0, 61, 5, 210) + row(0, 62, 5, 210), {.trim = true});
  ASSERT_TRUE(recording);
  EXPECT_TRUE(has_warning(*recording, "nothing is trimmed"));
}

TEST(Dmon, SeveralBlocksOfACaptureAreNotJoined) {
  const std::string text = "a capture\n" + kHead + row(0, 61, 5, 210) + row(0, 61, 5, 210) +
                           "\nand under load\n" + kHead + row(0, 300, 99, 1000) +
                           row(0, 300, 99, 1000);
  EXPECT_THAT(import_error(text), HasSubstr("2 blocks of dmon rows, from the lines 4, 10"));
  const auto second = import_text(text, {.block = 2});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*second, "gpu0")), 300, 1e-9);
  EXPECT_FALSE(has_warning(*second, "paused"));
  EXPECT_THAT(import_error(text, {.block = 3}), HasSubstr("no block 3 of dmon rows, only 2"));
}

TEST(Dmon, ADamagedLineOfUnitsSaysNothing) {
  EXPECT_TRUE(import_text("# gpu pwr gtemp\n# Idx\n0 61 40\n0 62 40\n"));
}

TEST(Dmon, SeveralGpusShareTheirTicks) {
  const auto recording = import_text(kHead + row(0, 61, 5, 210) + row(11, 71, 5, 210) +
                                     row(0, 62, 5, 210) + row(11, 72, 5, 210));
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->domains.size(), 2u);
  EXPECT_EQ(recording->domains[1].device, "gpu11");
  const auto first = powers_of(*recording, "gpu0"), second = powers_of(*recording, "gpu11");
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(first[1].at, second[1].at);
  EXPECT_EQ(second[1].at, at(seconds{1}));
}

TEST(Dmon, AbsentPowerIsAFailureOrAReason) {
  const auto recording = import_text(
      "# gpu pwr\n# Idx W\n 0 61\n 1 -\n 0 -\n 1 -\n 0 63\n 1 -\n 0 4294967295\n 1 -\n");
  ASSERT_TRUE(recording);
  EXPECT_EQ(powers_of(*recording, "gpu0").size(), 2u);
  EXPECT_EQ(recording->readings.failures.size(), 2u);
  EXPECT_TRUE(has_warning(*recording, "left out, above what any gpu draws"));
  EXPECT_TRUE(recording->domains[0].unavailable_reason.empty());
  EXPECT_THAT(recording->domains[1].unavailable_reason, HasSubstr("no power"));
}

TEST(Dmon, DatesBecomeClockPointsAndPausesAreCutOut) {
  const auto recording = import_text(
      "#Date Time gpu pwr\n#YYYYMMDD HH:MM:SS Idx W\n"
      " 20261121 03:00:00 0 61\n 20261121 03:00:01 0 61\n"
      " 20261121 04:00:00 0 61\n 20261121 04:00:01 0 61\n");
  ASSERT_TRUE(recording);
  // Four rows, each of the second before it.
  EXPECT_EQ(recording->run.work_end, at(seconds{3}));
  EXPECT_TRUE(has_warning(*recording, "paused 1 time: 3598 s"));
  ASSERT_EQ(recording->clock_points.size(), 4u);
  EXPECT_EQ(recording->clock_points[2].real - recording->clock_points[1].real, seconds{3599});
  EXPECT_EQ(recording->clock_points[2].host - recording->clock_points[1].host,
            Duration{seconds{1}});
  const ClockMap map(recording->clock_points);
  EXPECT_EQ(map.to_real(*recording->run.work_end) - map.to_real(*recording->run.work_begin),
            seconds{3601});
}

TEST(Dmon, RowsThatShareASecondAreSpreadOverIt) {
  const auto recording = import_text(
      "#Time gpu pwr\n 03:00:00 0 61\n 03:00:01 0 61\n 03:00:01 0 61\n 03:00:03 0 61\n");
  ASSERT_TRUE(recording);
  const auto powers = powers_of(*recording, "gpu0");
  EXPECT_EQ(powers[1].at, at(seconds{1}));
  EXPECT_EQ(powers[2].at, at(std::chrono::milliseconds{1500}));
  EXPECT_TRUE(recording->clock_points.empty());
}

TEST(Dmon, UnusableLogs) {
  EXPECT_THAT(import_error(kHead), HasSubstr("in: a header, and no row under it"));
  EXPECT_THAT(import_error(kHead + "    0     61"), HasSubstr("no row under it"));
  EXPECT_THAT(import_error(kHead + row(0, 61, 5, 210)), HasSubstr("fewer than two power readings"));
  EXPECT_THAT(import_error("# gpu sm\n 0 5\n 0 5\n"), HasSubstr("it has no power; log power with"));
  EXPECT_THAT(import_error(kHead + row(0, 61, 5, 210) + row(0, 61, 5, 210),
                           {.format = "dmon", .interval = std::chrono::hours{24 * 365 * 200}}),
              HasSubstr("interval"));
}

TEST(Dmon, ALogThatIsCutOffWithinARowLacksIt) {
  const auto recording =
      import_text(kHead + row(0, 61, 5, 210) + row(0, 62, 5, 210) + "    0     6");
  ASSERT_TRUE(recording);
  EXPECT_TRUE(recording->run.complete);
  EXPECT_TRUE(has_warning(*recording, "in, line 5"));
  EXPECT_EQ(recording->readings.powers.size(), 2u);
}

struct KnownLog {
  const char* file;
  int rows;
  double mean_watts;
  double idle_watts;
};

void PrintTo(const KnownLog& log, std::ostream* out) { *out << log.file; }

class DmonPeers : public ::testing::TestWithParam<KnownLog> {};

TEST_P(DmonPeers, GivesTheKnownMeans) {
  JOULEPROF_PEER_FILE(file, std::string("nvidia_smi_dmon/") + GetParam().file);
  const auto recording = import_files({file}, {.trim = true});
  ASSERT_TRUE(recording) << recording.error().message;
  const auto powers = powers_of(*recording, "gpu0");
  // Each row holds for the second that ends at it.
  const auto mean = [&](HostTime begin, HostTime end) {
    double sum = 0;
    int count = 0;
    for (const auto& power : powers) {
      if (power.at <= begin || power.at > end) continue;
      sum += power.power.watts();
      ++count;
    }
    EXPECT_EQ(Duration{seconds{count}}, end - begin);
    return sum / count;
  };
  EXPECT_EQ(recording->run.work_end.value() - recording->run.work_begin.value(),
            Duration{seconds{GetParam().rows}});
  EXPECT_NEAR(mean(*recording->run.work_begin, *recording->run.work_end), GetParam().mean_watts,
              0.0005);
  ASSERT_EQ(recording->idle_spans.size(), 1u);
  EXPECT_EQ(mean(recording->idle_spans[0].begin, recording->idle_spans[0].end),
            GetParam().idle_watts);
}

INSTANTIATE_TEST_SUITE_P(A100, DmonPeers,
                         ::testing::Values(KnownLog{"deit-t_power.csv", 98, 68.000, 61},
                                           KnownLog{"deit-b-power.csv", 97, 86.567, 61},
                                           KnownLog{"bert-b-128_power.csv", 97, 80.773, 62},
                                           // idle only: seven rows, six seconds between them
                                           KnownLog{"power_usage.csv", 6, 61, 61}));

TEST(DmonPeerFiles, IdleOnlyLogIsIdleThroughout) {
  JOULEPROF_PEER_FILE(file, "nvidia_smi_dmon/power_usage.csv");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->readings.powers.size(), 7u);
  EXPECT_EQ(recording->idle_spans[0].begin, recording->run.work_begin);
  EXPECT_EQ(recording->idle_spans[0].end, recording->run.work_end);
}

TEST(DmonPeerFiles, SectionsOfCompleteCaptures) {
  const auto import_capture = [](const std::filesystem::path& file, std::size_t block) {
    EXPECT_FALSE(import_files({file}));
    auto recording = import_files({file}, {.trim = true, .block = block});
    EXPECT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->readings.powers.size(), 5u);
    EXPECT_TRUE(has_warning(*recording, "rows of pmon left out"));
    return recording;
  };
  JOULEPROF_PEER_FILE(h100,
                      "nvidia_smi_captures/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt");
  JOULEPROF_PEER_FILE(mig, "nvidia_smi_captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt");
  JOULEPROF_PEER_FILE(l40s, "nvidia_smi_captures/linux-x86_64__nvidia-l40s__595.80.txt");

  auto recording = import_capture(h100, 1);
  EXPECT_EQ(powers_of(*recording, "gpu0").front().power.watts(), 69);
  recording = import_capture(h100, 2);
  EXPECT_EQ(powers_of(*recording, "gpu0").back().power.watts(), 636);
  // Three of the five loaded rows.
  EXPECT_EQ(recording->run.work_end.value() - recording->run.work_begin.value(),
            Duration{seconds{3}});

  recording = import_capture(mig, 1);
  EXPECT_TRUE(recording->idle_spans.empty());
  EXPECT_EQ(recording->run.work_begin, at(seconds{0}));

  recording = import_capture(l40s, 1);
  for (const auto& sensor : recording->sensors) {
    EXPECT_NE(sensor.name, model::gauge::kMemoryTemperature);
  }
}

}  // namespace
}  // namespace jouleprof::importers
