#include "recording/writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <limits>

#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class WriterRoundTrip : public testing::TestWithParam<unsigned> {};

TEST_P(WriterRoundTrip, IsExact) {
  const TempTree tree;
  const model::Recording recording = RandomRecording(GetParam()).make();
  const auto written = write_recording(tree / "x.jprof", recording);
  ASSERT_TRUE(written) << written.error().message;
  const auto read = read_recording(tree / "x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, recording);
  EXPECT_THAT(names_in(tree.root()), ElementsAre("x.jprof"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, WriterRoundTrip, testing::Range(0U, 20U));

TEST(Writer, AnEmptyRecordingIsOne) {
  const TempTree tree;
  ASSERT_TRUE(Writer::create(tree / "x.jprof")->finish());
  model::Recording nothing;
  nothing.run.complete = true;
  expect_equal(read_recording(tree / "x.jprof").value(), nothing);
}

TEST(Writer, DescribingAgainReplacesAndKeepsReadings) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  ASSERT_TRUE(writer.append(numbered_powers(0, 10)));
  model::RunInfo run;
  run.command = {"a", "b", "c"};
  run.complete = true;
  ASSERT_TRUE(writer.set_run(run));
  run.command = {"d"};
  run.exit_status = 137;
  ASSERT_TRUE(writer.set_run(run));
  model::Sensor sensor;
  sensor.name = "renamed";
  ASSERT_TRUE(writer.add(sensor));
  ASSERT_TRUE(writer.set_overhead({Duration{1}, Duration{2}, 3}));
  ASSERT_TRUE(writer.set_overhead({Duration{4}, Duration{5}, 6}));
  ASSERT_TRUE(writer.close());
  const auto read = read_recording(tree / "x.jprof").value();
  run.complete = false;
  EXPECT_EQ(read.run, run);
  EXPECT_THAT(read.sensors, ElementsAre(sensor));
  EXPECT_EQ(read.readings.powers.size(), 10U);
  EXPECT_EQ(read.overhead, (model::Overhead{Duration{4}, Duration{5}, 6}));
}

TEST(Writer, WhatCannotBeIsAFailureAndNoReading) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  model::Readings readings;
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 1e300,
                           -std::numeric_limits<double>::infinity()}) {
    readings.powers.push_back({model::SensorId{0}, HostTime{}, Power::watts(bad)});
  }
  readings.gauges.push_back({model::SensorId{0}, HostTime{}, std::nan("")});
  readings.gauges.push_back({model::SensorId{0}, HostTime{}, 1e300});
  ASSERT_TRUE(writer.append(readings));
  ASSERT_TRUE(writer.finish());
  const auto read = read_recording(tree / "x.jprof").value().readings;
  EXPECT_TRUE(read.powers.empty());
  EXPECT_EQ(read.gauges.size(), 1U);
  ASSERT_EQ(read.failures.size(), 4U);
  EXPECT_EQ(read.failures[0].error.code, Errc::kCorrupt);
}

TEST(Writer, AByteCountBeyondReasonStaysReadable) {
  const TempTree tree;
  Writer writer = Writer::create(tree / "x.jprof").value();
  ASSERT_TRUE(writer.set_overhead({{}, {}, std::numeric_limits<std::uint64_t>::max()}));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(read_recording(tree / "x.jprof").value().overhead->peak_memory_bytes, (1ULL << 62) - 1);
}

TEST(Writer, RefusesReadingsOfNothingAndStaysRefusing) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  ASSERT_TRUE(writer.append(numbered_powers(0, 3)));
  ASSERT_TRUE(writer.commit());
  model::Readings of_nothing;
  of_nothing.gauges.push_back({model::SensorId{7}, HostTime{}, 1});
  const auto refused = writer.append(of_nothing);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr((tree / "x.jprof").string()));
  EXPECT_EQ(writer.append(numbered_powers(3, 3)).error(), refused.error());
  EXPECT_EQ(writer.commit().error(), refused.error());
  EXPECT_EQ(writer.finish().error(), refused.error());
  const auto read = read_recording(tree / "x.jprof").value();
  EXPECT_EQ(read.readings.powers.size(), 3U);
  EXPECT_FALSE(read.run.complete);
}

TEST(Writer, SaysSoWhenUsedAfterTheEnd) {
  const TempTree tree;
  Writer writer = Writer::create(tree / "x.jprof").value();
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(writer.commit().error().code, Errc::kInternal);
  EXPECT_EQ(writer.finish().error().code, Errc::kInternal);
}

TEST(Writer, DestroyedItLeavesAnIncompleteRecording) {
  const TempTree tree;
  {
    Writer writer = writer_with_sensor(tree / "x.jprof");
    ASSERT_TRUE(writer.append(numbered_powers(0, 5)));
  }
  const auto read = read_recording(tree / "x.jprof").value();
  EXPECT_EQ(read.readings.powers.size(), 5U);
  EXPECT_FALSE(read.run.complete);
  EXPECT_THAT(names_in(tree.root()), ElementsAre("x.jprof"));
}

// Of a program that closed all descriptors, and has opened its own.
TEST(Writer, FilesOfTheProgramUnderItsNumbersAreNeitherWrittenNorClosed) {
  constexpr int kFiles = 16;
  const TempTree tree;
  const int first = ::open("/", O_PATH | O_CLOEXEC);
  ::close(first);
  {
    Writer writer = writer_with_sensor(tree / "x.jprof");
    ASSERT_TRUE(writer.append(numbered_powers(0, 10)));
    ASSERT_TRUE(writer.commit());
    for (int fd = first; fd < first + kFiles; ++fd) ::close(fd);
    for (int fd = first; fd < first + kFiles; ++fd) {
      const auto name = tree / std::to_string(fd);
      ASSERT_EQ(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), fd);
    }
    const auto done = writer.append(numbered_powers(10, 10));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("this program closed all descriptors"));
    EXPECT_FALSE(writer.commit());
    EXPECT_FALSE(writer.finish());
  }
  for (int fd = first; fd < first + kFiles; ++fd) {
    EXPECT_EQ(::lseek(fd, 0, SEEK_END), 0) << fd;
    EXPECT_EQ(::close(fd), 0) << fd;
  }
}

TEST(WriterCreate, DoesNotOverwriteUnlessAsked) {
  const TempTree tree({{"x.jprof", "precious"}});
  const auto refused = Writer::create(tree / "x.jprof");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr((tree / "x.jprof").string()));
  EXPECT_EQ(bytes_of(tree / "x.jprof"), "precious");
  ASSERT_TRUE(Writer::create(tree / "x.jprof", {.overwrite = true})->finish());
  EXPECT_TRUE(read_recording(tree / "x.jprof"));
}

TEST(WriterCreate, IsNotMisledByLeftoversOfTheSameName) {
  const TempTree tree;
  model::Recording old = RandomRecording(1).make();
  ASSERT_TRUE(write_recording(tree / "old.jprof", old));
  // As after a kill and a deletion of the main file alone.
  Writer killed = writer_with_sensor(tree / "y.jprof");
  ASSERT_TRUE(killed.append(numbered_powers(0, 50)));
  ASSERT_TRUE(killed.commit());
  fs::copy(tree / "y.jprof-wal", tree / "x.jprof-wal");
  tree.write("x.jprof-journal", "rubbish");
  ASSERT_TRUE(Writer::create(tree / "x.jprof")->finish());
  EXPECT_TRUE(read_recording(tree / "x.jprof")->readings.empty());
}

TEST(WriterCreate, NamesWhatIsInTheWay) {
  const TempTree tree({{"file", ""}, {"folder/file", ""}});
  const auto code = [&](const fs::path& path, bool overwrite = false) {
    const auto made = Writer::create(path, {overwrite});
    EXPECT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr(path.string()));
    return made.error().code;
  };
  EXPECT_EQ(code(tree / "folder", true), Errc::kInvalidArgument);
  EXPECT_EQ(code(tree / "nowhere/x.jprof"), Errc::kNotFound);
  EXPECT_EQ(code(tree / "file/x.jprof"), Errc::kNotFound);
  EXPECT_EQ(code("/dev/null", true), Errc::kInvalidArgument);
  EXPECT_EQ(code(""), Errc::kInvalidArgument);
}

TEST(WriterCreate, InAFolderWithoutPermission) {
  const TempTree tree({{"folder/file", ""}});
  chmod(tree.root().c_str(), 0755);
  const ReadOnly read_only(tree / "folder");
  if (!read_only.effective()) GTEST_SKIP() << "cannot give up root here";
  const auto made = Writer::create(tree / "folder/x.jprof");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kPermissionDenied);
  EXPECT_THAT(made.error().message, HasSubstr("folder/x.jprof"));
}

// SQLite's dot-file locks come without shared memory, like some network file systems.
class NoSharedMemory : public testing::Test {
 protected:
  NoSharedMemory() { sqlite3_vfs_register(sqlite3_vfs_find("unix-dotfile"), 1); }
  ~NoSharedMemory() override { sqlite3_vfs_register(usual_, 1); }

 private:
  sqlite3_vfs* usual_ = sqlite3_vfs_find(nullptr);
};

TEST_F(NoSharedMemory, ARollbackJournalHasToDo) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  ASSERT_TRUE(writer.append(numbered_powers(0, 500)));
  ASSERT_TRUE(writer.commit());
  EXPECT_FALSE(fs::exists(tree / "x.jprof-wal"));
  ASSERT_TRUE(writer.append(numbered_powers(500, 500)));
  ASSERT_TRUE(writer.finish());
  EXPECT_TRUE(read_recording(tree / "x.jprof")->readings == numbered_powers(0, 1000));
  EXPECT_THAT(names_in(tree.root()), ElementsAre("x.jprof"));
}

}  // namespace
}  // namespace jouleprof::recording
