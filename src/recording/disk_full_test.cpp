// Recordings on disks that have no room for them, or may not be written to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Appends until there is no room, and expects everything committed before to be there afterwards.
void fill_up(const fs::path& path) {
  Writer writer = writer_with_sensor(path);
  int committed = 0;
  Result<void> done;
  for (int n = 0; done && n < 1'000'000; n += 100) {
    done = writer.append(numbered_powers(n, 100));
    if (done) done = writer.commit();
    if (done) committed = n + 100;
  }
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kUnavailable);
  EXPECT_THAT(done.error().message, HasSubstr(path.string()));
  EXPECT_EQ(writer.append(numbered_powers(0, 1)).error(), done.error());
  EXPECT_EQ(writer.finish().error(), done.error());
  EXPECT_GT(committed, 0);
  const auto read = read_recording(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->run.complete);
  EXPECT_TRUE(read->readings == numbered_powers(0, committed));
}

TEST(WriterDiskFull, KeepsWhatItHadUnderALimit) {
  const TempTree tree;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{300'000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  fill_up(tree / "x.jprof");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

class SmallDisk : public testing::Test {
 protected:
  void mount_disk(const char* options) {
    fs::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, options) != 0) {
      GTEST_SKIP() << "cannot mount a small disk: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  ~SmallDisk() override {
    if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
  }
  TempTree tree_;
  fs::path disk_ = tree_ / "disk";
  bool mounted_ = false;
};

TEST_F(SmallDisk, KeepsWhatItHadWhenFull) {
  mount_disk("size=500k");
  if (IsSkipped()) return;
  fill_up(disk_ / "x.jprof");
}

TEST_F(SmallDisk, TooSmallToBeginOn) {
  mount_disk("size=16k");
  if (IsSkipped()) return;
  const auto made = Writer::create(disk_ / "x.jprof");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kUnavailable);
  EXPECT_THAT(made.error().message, HasSubstr("x.jprof"));
  EXPECT_THAT(names_in(disk_), testing::IsEmpty());
}

TEST_F(SmallDisk, IsEnoughForARecordingOrForNone) {
  mount_disk("size=4k");
  if (IsSkipped()) return;
  int enough = 0;
  for (int size = 40; size < 320; size += 4) {
    const std::string options = fmt::format("size={}k", size);
    ASSERT_EQ(mount("", disk_.c_str(), "", MS_REMOUNT, options.c_str()), 0) << std::strerror(errno);
    if (auto writer = Writer::create(disk_ / "x.jprof"); writer) {
      ++enough;
      const auto read = read_recording(disk_ / "x.jprof");
      EXPECT_TRUE(read) << size << ": " << read.error().message;
      (void)writer->close();
      EXPECT_TRUE(read_recording(disk_ / "x.jprof")) << size;
    }
    for (const auto& name : names_in(disk_)) fs::remove(disk_ / name);
  }
  EXPECT_GT(enough, 5);
}

TEST_F(SmallDisk, AnImportThatDoesNotFitLeavesNothing) {
  mount_disk("size=300k");
  if (IsSkipped()) return;
  const auto written = write_recording(disk_ / "x.jprof", RandomRecording(1, 20000).make());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kUnavailable);
  EXPECT_THAT(names_in(disk_), testing::IsEmpty());
}

TEST_F(SmallDisk, AFinishedRecordingReadsFromAReadOnlyDisk) {
  mount_disk("size=4m");
  if (IsSkipped()) return;
  const model::Recording recording = RandomRecording(2).make();
  ASSERT_TRUE(write_recording(disk_ / "x.jprof", recording));
  ASSERT_EQ(mount("", disk_.c_str(), "", MS_REMOUNT | MS_RDONLY, ""), 0) << std::strerror(errno);
  const auto read = read_recording(disk_ / "x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, recording);
  EXPECT_EQ(Writer::create(disk_ / "y.jprof").error().code, Errc::kPermissionDenied);
}

}  // namespace
}  // namespace jouleprof::recording
