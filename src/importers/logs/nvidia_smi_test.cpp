#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "importers/importers_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kHeader = "timestamp, index, power.draw [W], utilization.gpu [%]\n";

std::string row(int second, int gpu, double watts) {
  return fmt::format("2026/08/17 22:35:{:02d}.{:03d}, {}, {:.2f} W, 50 %\n", second, gpu, gpu,
                     watts);
}

// A wrong guess would be a thousand times the power.
TEST(NvidiaSmi, NumbersBetweenSemicolonsThatCanBeReadInTwoWaysAreRefused) {
  const std::string log = "timestamp;power.draw [W]\n2026/08/17 22:35:54.844;44,94 W\n";
  const std::string next = "2026/08/17 22:35:56.844;";
  for (const char* cell : {"45,060 W", "45.06 W", "1.045,06 W", "45,06,1"}) {
    const std::string message = import_error(log + next + cell + "\n");
    EXPECT_THAT(message, HasSubstr("line 3")) << cell;
    EXPECT_THAT(message, HasSubstr("give the file as it was written")) << cell;
  }
}

// Other tools' tables have a time stamp, too.
TEST(NvidiaSmi, SemicolonsAndATimeStampAreNotEnough) {
  EXPECT_THAT(import_error("timestamp;run_id;duration;cost;energy\n"
                           "2026-03-01T12:00:00;a;3600;0,1;0,31\n"),
              HasSubstr("not recognised as any of"));
  EXPECT_TRUE(
      import_text("\"timestamp\"; \"power.draw [W]\"\n2026/08/17 22:35:54,844; 81,25 W\n"
                  "2026/08/17 22:35:55,844; 81,25 W\n"));
}

// The sensors of each product have their own errors and limits.
TEST(NvidiaSmi, EachGpuHasTheNameInItsRows) {
  const auto log = [](const std::vector<std::string>& names, bool has_times) {
    std::string text = has_times ? "timestamp, name, power.draw [W]\n" : "name, power.draw [W]\n";
    for (int s = 0; s <= 20; ++s) {
      for (std::size_t g = 0; g < names.size(); ++g) {
        if (has_times) text += fmt::format("2026/08/17 22:35:{:02d}.00{}, ", s, g);
        text += fmt::format("{}, {}.00 W\n", s == 4 ? "[Unknown Error]" : names[g],
                            60 + s + 300 * static_cast<int>(g));
      }
    }
    return text;
  };
  const auto recording = import_text(log({"NVIDIA L4", "NVIDIA H100"}, true));
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->domains.size(), 2u);
  EXPECT_EQ(recording->domains[0].name, "NVIDIA L4");
  EXPECT_EQ(recording->domains[1].name, "NVIDIA H100");
  EXPECT_TRUE(import_text(log({"NVIDIA L4"}, false)));
  EXPECT_THAT(import_error(log({"NVIDIA A10", "NVIDIA A16"}, false)),
              HasSubstr("line 3 has the power of a 'NVIDIA A16', where gpu0 was a 'NVIDIA A10'"));
}

TEST(NvidiaSmi, TwoGpusByIndex) {
  std::string text = kHeader;
  for (int s = 0; s <= 10; ++s) text += row(s, 0, 100) + row(s, 3, 100 + 10 * s);
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:nvidia-smi");
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 1000, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu3")), 1500, 1e-6);
  EXPECT_EQ(powers_of(*recording, "gpu3")[0].at, HostTime{milliseconds{3}});
  ASSERT_EQ(recording->clock_points.size(), 2u);
  const model::Sensor& power = recording->sensors.front();
  EXPECT_EQ(power.kind, model::SensorKind::kPowerAverage);
  EXPECT_EQ(power.traits.window, seconds{1});
}

// The log of an hour with one look each 30 s and eight GPUs has no pause: the many small distances
// within a look are not the usual distance.
TEST(NvidiaSmi, SlowLogsOfManyGpusHaveNoPauses) {
  std::string text = kHeader;
  for (int minute = 10; minute < 13; ++minute) {
    for (const int s : {0, 30}) {
      for (int gpu = 0; gpu < 8; ++gpu) {
        text +=
            fmt::format("2026/08/17 22:{}:{:02d}.00{}, {}, 80.00 W, 0 %\n", minute, s, gpu, gpu);
      }
    }
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_FALSE(has_warning(*recording, "paused"));
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu7")), 80 * 150, 1e-6);
}

TEST(NvidiaSmi, SpellingsOfOneLogAreTheSameLog) {
  const std::vector<std::string> spellings = {
      // csv
      "timestamp, power.draw [W]\n2026/08/17 22:35:54.844, 44.94 W\n2026/08/17 22:35:56.844, 45.06 "
      "W\n",
      // csv,nounits
      "timestamp, power.draw [W]\n2026/08/17 22:35:54.844, 44.94\n2026/08/17 22:35:56.844, 45.06\n",
      // csv,noheader
      "2026/08/17 22:35:54.844, 44.94 W\n2026/08/17 22:35:56.844, 45.06 W\n",
      // written again by pandas
      "timestamp,power.draw [W]\n2026-08-17 22:35:54.844,44.94\n2026-08-17 22:35:56.844,45.06\n",
      // other order, line ends of Windows
      "power.draw [W], timestamp\r\n44.94 W, 2026/08/17 22:35:54.844\r\n"
      "45.06 W, 2026/08/17 22:35:56.844\r\n",
      // saved by a spreadsheet whose locale has decimal commas
      "timestamp;driver_version;power.draw [W]\r\n2026/08/17 22:35:54,844;550.54;44,94 W\r\n"
      "2026/08/17 22:35:56,844;550.54;45,06 W\r\n",
      // the same with decimal points
      "timestamp;power.draw [W]\n2026/08/17 22:35:54.844;\"44.94\"\n2026/08/17 22:35:56.844;"
      "45.06\n"};
  for (const std::string& text : spellings) {
    const auto recording = import_text(text);
    ASSERT_TRUE(recording) << text << recording.error().message;
    EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 90, 1e-9) << text;
  }
  const auto listed =
      import_text("2026/08/17 22:35:54.844, 0, 44.94\n2026/08/17 22:35:56.844, 0, 45.06\n",
                  {.columns = "timestamp,index,power.draw"});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*listed, "gpu0")), 90, 1e-9);
}

TEST(NvidiaSmi, GaugesAreInSiUnits) {
  const auto recording = import_text(
      "timestamp, power.draw [W], clocks.current.sm [MHz], memory.used [MiB], fan.speed [%], "
      "pstate\n"
      "2026/08/17 22:35:54.844, 44.94 W, 1980 MHz, 2 MiB, 30 %, P0\n"
      "2026/08/17 22:35:55.844, 44.94 W, [N/A], 2 MiB, [N/A], P0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  std::map<std::string, std::vector<double>> values;
  for (const auto& gauge : recording->readings.gauges) {
    values[recording->sensors[static_cast<std::size_t>(gauge.sensor)].name].push_back(gauge.value);
  }
  EXPECT_EQ(values.at(std::string(model::gauge::kSmClock)), std::vector<double>{1980e6});
  EXPECT_EQ(values.at(std::string(model::gauge::kFanSpeed)), std::vector<double>{0.3});
  EXPECT_EQ(values.at(std::string(model::gauge::kMemoryUsed)).size(), 2u);
  EXPECT_TRUE(has_warning(*recording, "1 column left out: 'pstate'"));
}

TEST(NvidiaSmi, RowsWithoutIndexAreSeparatedByTheirTimes) {
  std::string text = "timestamp, power.draw [W]\n";
  for (int s = 0; s < 30; ++s) {
    text +=
        fmt::format("2026/08/17 22:35:{:02d}.101, 50 W\n2026/08/17 22:35:{:02d}.103, 70 W\n", s, s);
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 50 * 29, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 70 * 29, 1e-6);
  EXPECT_TRUE(has_warning(*recording, "2 rows come at a time"));
  EXPECT_THAT(import_error(text + "2026/08/17 22:36:00.101, 50 W\n2026/08/17 22:36:01.101, 50 W\n"),
              HasSubstr("does not say which GPU"));
}

TEST(NvidiaSmi, GpusByUuid) {
  const auto recording = import_text(
      "timestamp, uuid, power.draw [W]\n"
      "2026/08/17 22:35:54.844, GPU-b, 50 W\n2026/08/17 22:35:54.845, GPU-a, 60 W\n"
      "2026/08/17 22:35:55.844, GPU-b, 50 W\n2026/08/17 22:35:55.845, GPU-a, 60 W\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->domains[0].uuid, "GPU-b");
  EXPECT_EQ(recording->domains[1].device, "gpu1");
}

TEST(NvidiaSmi, AbsentPowerIsAFailureNotAZero) {
  const auto recording = import_text(kHeader + row(0, 0, 100) +
                                     "2026/08/17 22:35:01.000, 0, [Unknown Error], [N/A]\n" +
                                     row(2, 0, 100) + row(0, 1, 100));
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(powers_of(*recording, "gpu0").size(), 2u);
  EXPECT_EQ(recording->readings.failures.size(), 1u);
}

TEST(NvidiaSmi, AppendedLogsAndErrorsInTheFile) {
  const auto recording =
      import_text("nohup: ignoring input\n" + kHeader + row(0, 0, 100) + row(1, 0, 100) +
                  "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.\n" +
                  kHeader + row(40, 0, 100) + row(41, 0, 100) + "2026/08/17 22:35:42.0");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "paused 1 time: 38 s"));
  EXPECT_TRUE(has_warning(*recording, "2 lines left out that are no row"));
  EXPECT_TRUE(recording->run.complete);
  // Two pieces of a second, and a second for the seam: a mean of the last second.
  EXPECT_EQ(recording->run.work_end, HostTime{seconds{3}});
}

TEST(NvidiaSmi, LogsWithoutTimesNeedAnInterval) {
  const std::string text =
      "index, power.draw [W]\n0, 50 W\n1, 60 W\n0, 50 W\n1, 60 W\n0, 50 W\n1, 60 W\n";
  auto recording = import_text(text, {.interval = seconds{5}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 600, 1e-6);
  EXPECT_TRUE(recording->clock_points.empty());
}

TEST(NvidiaSmi, BadLogs) {
  EXPECT_THAT(import_error("timestamp, utilization.gpu [%]\n2026/08/17 22:35:54.844, 5 %\n"),
              HasSubstr("it has no power; log it with --query-gpu"));
  EXPECT_THAT(import_error(kHeader), HasSubstr("no row"));
  EXPECT_THAT(import_error(kHeader + "2026/08/17 22:35:54.844, 0, many, 5 %\n"),
              HasSubstr("line 2: 'many' is no number"));
  EXPECT_THAT(import_error(kHeader + "2026/08/17 22:35:54.844, 0, 5 hp, 5 %\n"),
              HasSubstr("in a unit that is not known for it"));
  EXPECT_THAT(import_error(kHeader + "yesterday, 0, 5 W, 5 %\n"), HasSubstr("no time"));
  EXPECT_THAT(import_error(kHeader + "2026/08/17 22:35:54.844, 0\n"),
              HasSubstr("2 fields under a header of 4"));
  EXPECT_THAT(import_error("timestamp, index, power.draw [W]\n"
                           "2026/08/17 22:00:00.000, 0, 100,50 W\n"),
              HasSubstr("4 fields under a header of 3; if its numbers have decimal commas, write "
                        "them with points"));
  EXPECT_THAT(import_error("1, 2, 3\n4, 5, 6\n", {.format = "nvidia-smi"}), HasSubstr("--columns"));
  EXPECT_THAT(import_error("timestamp, power.draw [hp]\n2026/08/17 22:35:54.844, 5\n"),
              HasSubstr("in a unit that is not known"));
}

}  // namespace
}  // namespace jouleprof::importers
