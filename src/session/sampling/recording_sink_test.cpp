#include "session/sampling/recording_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/file.h"
#include "recording/reader.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

model::Domain gpu() {
  model::Domain domain;
  domain.device = "gpu0";
  return domain;
}

model::Readings powers(int from, int count) {
  model::Readings readings;
  for (int i = from; i < from + count; ++i) {
    readings.powers.push_back(
        {model::SensorId{0}, HostTime{std::chrono::milliseconds{i}}, Power::watts(i)});
  }
  return readings;
}

void describe(Sink& sink) {
  model::RunInfo run;
  run.source = "run";
  ASSERT_TRUE(sink.set_run(run));
  ASSERT_TRUE(sink.add(gpu()));
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kPowerInstant;
  sensor.name = "power";
  ASSERT_TRUE(sink.add(sensor));
}

TEST(RecordingSink, AnOldFileStaysUntilTheWorkBegins) {
  const TempTree tree({{"x.jprof", "old"}});
  auto sink = RecordingSink::create(tree / "x.jprof", true);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->append(powers(0, 10)));
  ASSERT_TRUE((*sink)->commit());
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
  EXPECT_FALSE((*sink)->has_file());
  EXPECT_EQ((*sink)->recording()->readings.powers.size(), 10U);

  model::RunInfo run;
  run.source = "run";
  run.work_begin = HostTime{std::chrono::milliseconds{10}};
  ASSERT_TRUE((*sink)->set_run(run));
  ASSERT_TRUE((*sink)->append(powers(10, 10)));
  ASSERT_TRUE((*sink)->finish());
  EXPECT_TRUE((*sink)->has_file());
  const auto read = recording::read_recording(tree / "x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->readings == powers(0, 20));
  EXPECT_TRUE(read->run.complete);
}

TEST(RecordingSink, RemovingOneThatNeverBeganKeepsTheOldFile) {
  const TempTree tree({{"x.jprof", "old"}});
  auto sink = RecordingSink::create(tree / "x.jprof", true);
  ASSERT_TRUE(sink);
  describe(**sink);
  (*sink)->remove();
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
}

TEST(RecordingSink, GoesOnInMemoryWhereTheDiskIsFull) {
  const TempTree tree;
  auto sink = RecordingSink::create(tree / "x.jprof", false);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->commit());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{300'000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  constexpr int kAll = 50'000;
  for (int n = 0; n < kAll; n += 1000) {
    ASSERT_TRUE((*sink)->append(powers(n, 1000)));
    ASSERT_TRUE((*sink)->commit());
  }
  const auto finished = (*sink)->finish();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(finished);
  EXPECT_EQ((*sink)->trouble(), finished.error());
  const auto all = (*sink)->recording();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->readings == powers(0, kAll));
  EXPECT_EQ(all->domains.size(), 1U);
  EXPECT_FALSE(all->run.complete);
  // And the file has what it took.
  EXPECT_TRUE((*sink)->has_file());
  const auto kept = recording::read_recording(tree / "x.jprof");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_GT(kept->readings.powers.size(), 0U);
  EXPECT_LT(kept->readings.powers.size(), static_cast<std::size_t>(kAll));
}

}  // namespace
}  // namespace jouleprof::session
