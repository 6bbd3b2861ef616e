// Logs that several loggers wrote into one file, and logs that only look so.
#include "importers/one_value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "importers/importers_fixture.h"

namespace jouleprof::importers {
namespace {

using ::testing::HasSubstr;

std::string clock_text(double second) {
  const int whole = static_cast<int>(second);
  return fmt::format("{:02}:{:02}:{:06.3f}", 3 + whole / 3600, whole / 60 % 60,
                     second - 60 * (whole / 60));
}

// Deterministic noise in -1 to 1.
double noise(int i) { return std::sin(12.9898 * i) * std::cos(78.233 * i * i); }

std::string smi_row(double second, int index, double watts, const std::string& more = "") {
  return fmt::format("2026/03/02 {}, {}, {:.2f} W{}\n", clock_text(second), index, watts, more);
}
const std::string kSmi = "timestamp, index, power.draw [W]\n";

std::string dmon_row(int second, int gpu, int watts) {
  return fmt::format("20260302 {} {} {} 40\n", clock_text(second).substr(0, 8), gpu, watts);
}
const std::string kDmon = "#Date Time gpu pwr gtemp\n#YYYYMMDD HH:MM:SS Idx W C\n";

void expect_refused(const std::string& text, const std::string& why = "contradict each other") {
  EXPECT_THAT(import_error(text), HasSubstr(why)) << text.substr(0, 300);
}

model::Recording expect_read(const std::string& text) {
  auto recording = import_text(text);
  EXPECT_TRUE(recording) << recording.error().message << "\n" << text.substr(0, 300);
  return recording.value_or(model::Recording{});
}

// Other tools have no such option.
TEST(OneValue, TheHintNamesTheToolWhoseOptionItIs) {
  std::string text = kDmon;
  for (int i = 0; i < 20; ++i) text += dmon_row(i, 0, 100) + dmon_row(i, 0, 300);
  expect_refused(text, "nvidia-smi --query-gpu=");
}

TEST(OneValue, TwoMachinesWhoseRowsAlternate) {
  for (const double phase : {0.002, 0.1, 0.26, 0.4, 0.7, 0.95}) {
    std::string text = kSmi;
    for (int i = 0; i < 30; ++i) {
      for (const auto& [at, watts] : {std::pair{0.0, 120.0}, {phase, 280.0}}) {
        const double second = i * 1.01 + at + 0.002 * noise(i);
        text += smi_row(second + 0.01, 0, watts + noise(i)) +
                smi_row(second + 0.011, 1, watts + noise(i + 7));
      }
    }
    expect_refused(text);
  }
}

TEST(OneValue, MachinesUnderTheSameLoad) {
  std::string text = kSmi;
  for (int i = 0; i < 60; ++i) {
    for (int host = 0; host < 3; ++host) {
      text += smi_row(i + 0.13 * host + 0.5, 0, 600 + 40 * noise(3 * i + host));
    }
  }
  expect_refused(text);
}

TEST(OneValue, ManyBoardsUnderOneIndex) {
  for (const bool whole_seconds : {false, true}) {
    std::string text = kSmi;
    for (int i = 0; i < 20; ++i) {
      for (int board = 0; board < 8; ++board) {
        text += smi_row(i + (whole_seconds ? 0 : 0.004 * board), 0,
                        300 + 45 * noise(8 * i + board) + 3 * board);
      }
    }
    expect_refused(text);
  }
}

TEST(OneValue, LogsOfTwoMachinesOneAfterTheOther) {
  const auto log = [](int seconds, double watts) {
    std::string text = kSmi;
    for (int i = 0; i < seconds; ++i) text += smi_row(i, 0, watts + noise(i));
    return text;
  };
  expect_refused(log(60, 100) + log(60, 300), "go back over a time");
  expect_refused(log(60, 100) + log(20, 100.5), "go back over a time");
  // In blocks, as a buffered output leaves them.
  std::string blocks = kSmi;
  for (int b = 0; b < 4; ++b) {
    for (const double watts : {100.0, 300.0}) {
      for (int i = 0; i < 20; ++i) blocks += smi_row(20 * b + i, 0, watts + noise(i));
    }
  }
  expect_refused(blocks);
}

TEST(OneValue, DmonOfTwoMachines) {
  std::string text = kDmon;
  for (int i = 0; i < 20; ++i) {
    const bool swapped = i % 3 == 1;
    text += dmon_row(i, 0, swapped ? 310 : 100) + dmon_row(i, 0, swapped ? 100 : 310);
  }
  expect_refused(text);
  // Equal powers do not make them one board: dmon never writes two rows a second.
  text = kDmon;
  for (int i = 0; i < 20; ++i) text += dmon_row(i, 0, 61) + dmon_row(i, 0, 61);
  expect_refused(text);
}

TEST(OneValue, LogsWithoutTimes) {
  std::string dcgm = "#Entity  POWER  TOTEC\nID  W  mJ\n";
  std::string dmon = "# gpu pwr\n# Idx W\n";
  std::string adjacent = "# gpu pwr\n# Idx W\n";
  for (int i = 0; i < 20; ++i) {
    dcgm += fmt::format("GPU 0  {}  {}\nGPU 0  {}  {}\n", 200 + i % 2, 5'000'000 + 200'000 * i,
                        200 + (i + 1) % 2, 9'000'000 + 200'000 * i);
    dmon += fmt::format("0 {}\n1 90\n0 {}\n1 90\n", 100 + i % 2, 300 + i % 2);
    adjacent += "0 100\n0 100\n1 100\n1 100\n";
  }
  expect_refused(dcgm, "energy counter");
  expect_refused(dmon, "alternates between");
  expect_refused(adjacent, "of the device of the row before");
}

TEST(OneValue, ATemperatureCannotAlternate) {
  std::string text = "timestamp, index, power.draw [W], temperature.gpu\n";
  for (int i = 0; i < 20; ++i) {
    text += smi_row(0.5 * i, 0, 250 + 20 * noise(i), fmt::format(", {}", i % 2 == 0 ? 41 : 66));
  }
  expect_refused(text, "temperature_celsius alternates");
}

TEST(OneValue, OneIndexWithSeveralUuidsIsSeparated) {
  std::string text = "timestamp, index, uuid, power.draw [W]\n";
  for (int i = 0; i < 11; ++i) {
    for (const auto& [uuid, watts] : {std::pair{"GPU-aa", 100}, {"GPU-bb", 300}}) {
      text += fmt::format("2026/03/02 {}, 0, {}, {} W\n", clock_text(i + (watts == 300 ? 0.3 : 0)),
                          uuid, watts);
    }
  }
  const auto recording = expect_read(text);
  EXPECT_NEAR(trapezoid(powers_of(recording, "gpu0")), 1000, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(recording, "gpu1")), 3000, 1e-6);
  EXPECT_TRUE(has_warning(recording, "one index has several UUIDs"));
}

// What only looks like several loggers.
TEST(OneValue, LoadsAndLoggersThatAreFine) {
  const auto log = [](int rows, double step, const std::function<double(int)>& watts) {
    std::string text = kSmi;
    for (int i = 0; i < rows; ++i) text += smi_row(i * step + 0.003 * noise(i), 0, watts(i));
    return text;
  };
  // Square waves, fast loads, noise, and a constant.
  for (const auto& watts : std::vector<std::function<double(int)>>{
           [](int i) { return i / 5 % 2 == 0 ? 100 : 300; },
           [](int i) { return i / 3 % 2 == 0 ? 100 + noise(i) : 300; },
           [](int i) { return 400 + 200 * noise(i); }, [](int) { return 250; },
           [](int i) { return 60 + i; }}) {
    for (const double step : {0.1, 1.0, 1.5}) {
      const auto recording = expect_read(log(60, step, watts));
      EXPECT_EQ(powers_of(recording, "gpu0").size(), 60u);
    }
  }
  // A power that alternates from row to row may be the load.
  const auto recording = expect_read(log(40, 1, [](int i) { return i % 2 == 0 ? 100 : 300; }));
  EXPECT_TRUE(has_warning(recording, "two GPUs under one name, or a load that changes as fast"));
}

TEST(OneValue, StampsThatJitterAreOfOneLogger) {
  std::string text = kSmi;
  for (int i = 0; i < 300; ++i) {
    text += smi_row(0.02 * i + 0.008 * noise(i) + 0.01, 0, 500 + 100 * noise(i * 3));
  }
  expect_read(text);
}

TEST(OneValue, ALogTwiceInTheFileCountsOnce) {
  std::string log = kSmi;
  for (int i = 0; i <= 20; ++i) log += smi_row(i, 0, 100 + 50 * noise(i));
  const auto once = expect_read(log);
  const auto twice = expect_read(log + log);
  EXPECT_EQ(trapezoid(powers_of(twice, "gpu0")), trapezoid(powers_of(once, "gpu0")));
  EXPECT_TRUE(has_warning(twice, "21 rows left out that stand in the log twice"));
}

TEST(OneValue, TwoLoggersOfOneBoardAreOneCurve) {
  const auto power = [](double t) { return 300 + 200 * std::sin(t / 3); };
  std::string text = kSmi;
  for (int i = 0; i < 60; ++i)
    text += smi_row(i, 0, power(i)) + smi_row(i + 0.2, 0, power(i + 0.2));
  const auto recording = expect_read(text);
  EXPECT_NEAR(trapezoid(powers_of(recording, "gpu0")), 300 * 59.2 + 600 * (1 - std::cos(59.2 / 3)),
              60);
}

TEST(OneValue, TwoLoggersOfOneConstantGiveAWarning) {
  std::string once = kSmi, twice = kSmi;
  for (int i = 0; i < 30; ++i) {
    once += smi_row(i, 0, 100);
    twice += smi_row(i, 0, 100) + smi_row(i + 0.37, 0, 100);
  }
  const std::string_view why = "2 rows come in each period, all with the same values";
  EXPECT_TRUE(has_warning(expect_read(twice), why));
  EXPECT_FALSE(has_warning(expect_read(once), why));
}

TEST(OneValue, AClockThatWasSetAndTheRepeatedHour) {
  std::string text = kSmi;
  for (int i = 0; i < 100; ++i) text += smi_row(i < 60 ? i : i - 3, 0, 100 + i % 5);
  EXPECT_TRUE(has_warning(expect_read(text), "time stamps go back 1 time"));
  text = kSmi;
  for (int i = 0; i < 240; ++i) {
    text += smi_row(60 * (i < 120 ? i : i - 60), 0, 100 + 50 * noise(i));
  }
  expect_read(text);
}

TEST(OneValue, SamplesOfTwoBoardsInOneTable) {
  DeviceRows rows;
  rows.device = "gpu0";
  rows.columns.push_back({"the power", false, false, {}});
  for (int i = 0; i < 40; ++i) {
    for (const double watts : {90.0, 310.0}) {
      rows.stamps.push_back(std::chrono::milliseconds{20 * i});
      rows.lines.push_back(rows.lines.size() + 2);
      rows.begins.push_back(false);
      rows.columns[0].values.push_back(watts + noise(i));
    }
  }
  const auto found = find_contradiction(rows);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_certain);
}

}  // namespace
}  // namespace jouleprof::importers
