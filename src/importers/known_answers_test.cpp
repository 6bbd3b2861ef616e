// Logs of other tools whose answers are closed forms: tests/fixtures/imports/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "importers/importers_fixture.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;

Result<model::Recording> import_fixture(const std::string& name,
                                        const ImportOptions& options = {}) {
  return import_files(
      {std::filesystem::path(JOULEPROF_SOURCE_DIR) / "tests/fixtures/imports" / name}, options);
}

double mean_watts(const model::Recording& recording, HostTime begin, HostTime end) {
  double sum = 0;
  int count = 0;
  for (const auto& power : powers_of(recording, "gpu0")) {
    if (power.at <= begin || power.at > end) continue;
    sum += power.power.watts();
    ++count;
  }
  return sum / count;
}

TEST(KnownAnswers, DmonWorkAndIdle) {
  const auto recording = import_fixture("dmon_work.txt", {.trim = true});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:dmon");
  EXPECT_EQ(powers_of(*recording, "gpu0").size(), 75u);
  const auto begin = recording->run.work_begin.value();
  const auto end = recording->run.work_end.value();
  EXPECT_EQ(end - begin, Duration{seconds{60}});
  EXPECT_EQ(mean_watts(*recording, begin, end), 120);
  ASSERT_EQ(recording->idle_spans.size(), 1u);
  EXPECT_EQ(mean_watts(*recording, recording->idle_spans[0].begin, recording->idle_spans[0].end),
            60);
}

TEST(KnownAnswers, DmonOverMidnight) {
  const auto recording = import_fixture("dmon_two_gpus.txt");
  ASSERT_TRUE(recording) << recording.error().message;
  const auto first = powers_of(*recording, "gpu0");
  const auto second = powers_of(*recording, "gpu1");
  ASSERT_EQ(first.size(), 11u);
  ASSERT_EQ(second.size(), 11u);
  EXPECT_EQ(first.back().at - first.front().at, Duration{seconds{10}});
  EXPECT_NEAR(trapezoid(first), 2000, 1e-9);
  EXPECT_NEAR(trapezoid(second), 1500, 1e-9);
}

TEST(KnownAnswers, AiPowerMeterNewerSchema) {
  const auto recording = import_fixture("aipowermeter_newer.json");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin, Duration{seconds{10}});
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 600, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "dram")), 50, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 300, 1e-6);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 800, 1e-6);
  EXPECT_TRUE(powers_of(*recording, "psys").empty());
}

TEST(KnownAnswers, AiPowerMeterOlderSchemaInTwoSegments) {
  const auto recording = import_fixture("aipowermeter_older.json");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "paused 1 time: 12 s"));
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cpu")), 200, 1e-5);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "cores")), 160, 1e-5);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpus")), 880, 1e-5);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "psys")), 416 + 206, 1e-5);
}

TEST(KnownAnswers, ZeusMonitor) {
  const auto recording = import_fixture("zeus_monitor.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin, Duration{seconds{2}});
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 80, 1e-6);
}

// "power_limit_watts" of the window with the least energy of those named `name`, or of all.
struct Least {
  std::string limit;
  double joules = 1e300;
};
Least least(const model::Recording& recording, const std::string& name,
            Duration longest = Duration::max()) {
  Least found;
  for (const auto& w : recording.imported_windows) {
    const double joules = w.energies.at(0).energy.joules();
    if ((!name.empty() && w.name != name) || w.duration > longest || joules > found.joules)
      continue;
    const auto label = std::find_if(w.labels.begin(), w.labels.end(),
                                    [](const auto& l) { return l.name == "power_limit_watts"; });
    found = {label == w.labels.end() ? "" : label->value, joules};
  }
  return found;
}

TEST(KnownAnswers, ZeusWindows) {
  const auto recording = import_fixture("zeus_windows.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 5u);
  const auto best = least(*recording, "");
  EXPECT_EQ(best.limit, "200");
  EXPECT_EQ(best.joules, 2400);
  const auto bounded = least(*recording, "", seconds{11});
  EXPECT_EQ(bounded.limit, "250");
  EXPECT_EQ(bounded.joules, 2520);
}

TEST(KnownAnswers, ZeusSweep) {
  const auto recording = import_fixture("zeus_sweep.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 6u);
  EXPECT_EQ(least(*recording, "made_up wide 64 sgd").limit, "150");
  EXPECT_EQ(least(*recording, "made_up wide 64 sgd").joules, 1560);
  EXPECT_EQ(least(*recording, "made_up narrow 64 sgd").limit, "100");
  EXPECT_EQ(least(*recording, "made_up narrow 64 sgd").joules, 640);
}

}  // namespace
}  // namespace jouleprof::importers
