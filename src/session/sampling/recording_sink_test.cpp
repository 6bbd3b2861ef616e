#include "session/sampling/recording_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/file.h"
#include "recording/reader.h"
#include "session/sampling/sampling_fixture.h"
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

// No file grows beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

void describe(Sink& sink) {
  model::RunInfo run;
  run.source = "run";
  Batch batch = batch_of(run);
  batch.domains.push_back(gpu());
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kPowerInstant;
  sensor.name = "power";
  batch.sensors.push_back(sensor);
  ASSERT_TRUE(sink.append(batch));
}

TEST(RecordingSink, AnOldFileStaysUntilTheWorkBegins) {
  const TempTree tree({{"x.jprof", "old"}});
  auto sink = RecordingSink::create(tree / "x.jprof", true);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->append(batch_of(powers(0, 10))));
  ASSERT_TRUE((*sink)->commit());
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
  EXPECT_FALSE((*sink)->has_file());
  EXPECT_EQ((*sink)->recording()->readings.powers.size(), 10U);

  model::RunInfo run;
  run.source = "run";
  run.work_begin = HostTime{std::chrono::milliseconds{10}};
  ASSERT_TRUE((*sink)->append(batch_of(run)));
  ASSERT_TRUE((*sink)->append(batch_of(powers(10, 10))));
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

TEST(RecordingSink, OneThatIsNotFinishedAndHasNoReadingsGivesTheOldFileBack) {
  const TempTree tree({{"x.jprof", "old"}});
  {
    auto sink = RecordingSink::create(tree / "x.jprof", true);
    ASSERT_TRUE(sink) << sink.error().message;
    describe(**sink);
    model::RunInfo run;
    run.work_begin = HostTime{std::chrono::seconds{30}};
    ASSERT_TRUE((*sink)->append(batch_of(run)));
    ASSERT_TRUE((*sink)->commit());
    EXPECT_NE(read_file(tree / "x.jprof"), "old");
  }
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
}

// Until then a tool that is killed would leave a recording of which no report can be made.
TEST(RecordingSink, TheOldFileIsKeptUntilTheNewOneHasAReadingOfTheWork) {
  const TempTree tree({{"x.jprof", "old"}});
  const auto is_kept = [&tree] {
    const auto names = names_in(tree.root());
    return std::ranges::any_of(names, [](const auto& name) { return name.ends_with(".old"); });
  };
  auto sink = RecordingSink::create(tree / "x.jprof", true);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->append(batch_of(powers(0, 10))));
  model::RunInfo run;
  run.work_begin = HostTime{std::chrono::milliseconds{10}};
  ASSERT_TRUE((*sink)->append(batch_of(run)));
  ASSERT_TRUE((*sink)->commit());
  EXPECT_TRUE(is_kept());
  ASSERT_TRUE((*sink)->append(batch_of(powers(10, 2))));
  ASSERT_TRUE((*sink)->commit());
  EXPECT_FALSE(is_kept());
}

TEST(RecordingSink, AFileThatTakesNoMoreIsTheOldOneAgain) {
  const TempTree tree({{"x.jprof", "old"}});
  auto sink = RecordingSink::create(tree / "x.jprof", true);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->append(batch_of(powers(0, 30'000))));
  model::RunInfo run;
  run.work_begin = HostTime{std::chrono::seconds{30}};
  {
    const FileSizeLimit limit(300'000);
    ASSERT_TRUE((*sink)->append(batch_of(run)));
    ASSERT_TRUE((*sink)->append(batch_of(powers(30'000, 1000))));
    EXPECT_FALSE((*sink)->finish());
  }
  EXPECT_FALSE((*sink)->has_file());
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tree.root()), {}),
            1);  // no other file
  EXPECT_TRUE((*sink)->recording()->readings == powers(0, 31'000));
}

TEST(RecordingSink, KeepsABoundedAmountInMemoryAndSaysWhatItLost) {
  const TempTree tree;
  constexpr std::size_t kMost = 1 << 20;
  auto sink = RecordingSink::create(tree / "x.jprof", false, kMost);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->commit());
  const FileSizeLimit limit(1000);
  for (int n = 0; n < 200'000; n += 1000) {
    ASSERT_TRUE((*sink)->append(batch_of(powers(n, 1000))));
    ASSERT_TRUE((*sink)->commit());
  }
  ASSERT_TRUE((*sink)->trouble());
  EXPECT_THAT((*sink)->trouble()->message, testing::HasSubstr("what was read later is lost"));
  const auto kept = (*sink)->recording();
  ASSERT_TRUE(kept);
  const std::size_t count = kept->readings.powers.size();
  EXPECT_GT(count * sizeof(model::PowerReading), kMost);
  EXPECT_LT(count * sizeof(model::PowerReading), kMost + (64 << 10));
  EXPECT_EQ(kept->readings.powers.back().power, Power::watts(static_cast<double>(count - 1)));
}

TEST(RecordingSink, GoesOnInMemoryWhereTheDiskIsFull) {
  const TempTree tree;
  auto sink = RecordingSink::create(tree / "x.jprof", false);
  ASSERT_TRUE(sink) << sink.error().message;
  describe(**sink);
  ASSERT_TRUE((*sink)->commit());
  auto limit = std::make_optional<FileSizeLimit>(300'000);
  constexpr int kAll = 50'000;
  for (int n = 0; n < kAll; n += 1000) {
    ASSERT_TRUE((*sink)->append(batch_of(powers(n, 1000))));
    ASSERT_TRUE((*sink)->commit());
  }
  const auto finished = (*sink)->finish();
  limit.reset();

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
