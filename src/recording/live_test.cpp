// Recordings that are still being written, or whose writer was killed.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr int kBatch = 25;

// A process that writes numbered readings, a commit after each batch, until it is killed.
class WritingProcess {
 public:
  explicit WritingProcess(const fs::path& path) {
    void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    committed_ = new (shared) std::atomic<int>(-1);
    pid_ = fork();
    if (pid_ == 0) write(path);
    wait_for(0);
  }
  WritingProcess(const WritingProcess&) = delete;
  WritingProcess& operator=(const WritingProcess&) = delete;
  ~WritingProcess() {
    kill_it();
    munmap(committed_, sizeof(std::atomic<int>));
  }

  // Readings that were committed for certain.
  int committed() const { return *committed_; }
  void wait_for(int readings) {
    while (*committed_ < readings) {
      std::this_thread::yield();
      if (waitpid(pid_, nullptr, WNOHANG) == 0) continue;
      pid_ = 0;
      FAIL() << "the writer failed";
    }
  }
  void kill_it() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  [[noreturn]] void write(const fs::path& path) noexcept {
    Writer writer = writer_with_sensor(path);
    for (int n = 0;; n += kBatch) {
      *committed_ = n;
      if (!writer.append(numbered_powers(n, kBatch)) || !writer.commit()) _exit(1);
    }
  }

  std::atomic<int>* committed_;
  pid_t pid_ = 0;
};

// All that was committed and at most the commit that was under way, whole.
void expect_cut_off(const Result<model::Recording>& read, int committed) {
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->run.complete);
  const int count = static_cast<int>(read->readings.powers.size());
  EXPECT_GE(count, committed);
  EXPECT_LE(count, committed + kBatch);
  EXPECT_TRUE(read->readings == numbered_powers(0, count));
}

TEST(Killed, AtAnyMomentLosesAtMostWhatWasNotCommitted) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const TempTree tree;
    WritingProcess process(tree / "x.jprof");
    std::this_thread::sleep_for(
        std::chrono::microseconds{std::uniform_int_distribution(0, 15'000)(random)});
    process.kill_it();
    expect_cut_off(read_recording(tree / "x.jprof"), process.committed());
    if (HasFailure()) return;
  }
}

TEST(Killed, ReadsTheSameAgainAndWithoutTheSharedMemoryFile) {
  const TempTree tree;
  WritingProcess process(tree / "x.jprof");
  process.wait_for(4 * kBatch);
  process.kill_it();
  expect_cut_off(read_recording(tree / "x.jprof"), process.committed());
  expect_cut_off(read_recording(tree / "x.jprof"), process.committed());
  fs::remove(tree / "x.jprof-shm");
  expect_cut_off(read_recording(tree / "x.jprof"), process.committed());
}

class KilledReadOnly : public testing::TestWithParam<bool> {};

TEST_P(KilledReadOnly, ReadsWhereNothingCanBeWritten) {
  const TempTree tree({{"folder/file", ""}});
  chmod(tree.root().c_str(), 0755);
  WritingProcess process(tree / "folder/x.jprof");
  process.wait_for(4 * kBatch);
  process.kill_it();
  if (GetParam()) fs::remove(tree / "folder/x.jprof-shm");
  const ReadOnly read_only(tree / "folder");
  if (!read_only.effective()) GTEST_SKIP() << "cannot give up root here";
  expect_cut_off(read_recording(tree / "folder/x.jprof"), process.committed());
}

INSTANTIATE_TEST_SUITE_P(WithoutSharedMemoryFile, KilledReadOnly, testing::Bool());

TEST(Live, IsReadWhileItGrows) {
  const TempTree tree;
  WritingProcess process(tree / "x.jprof");
  int before = 0;
  for (int round = 0; round < 15; ++round) {
    const int committed = process.committed();
    const auto read = read_recording(tree / "x.jprof");
    ASSERT_TRUE(read) << read.error().message;
    const int count = static_cast<int>(read->readings.powers.size());
    EXPECT_GE(count, std::max(before, committed));
    EXPECT_TRUE(read->readings == numbered_powers(0, count));
    before = count;
  }
}

TEST(Live, IsReadByAnotherUserWhileItGrows) {
  const TempTree tree({{"folder/file", ""}});
  chmod(tree.root().c_str(), 0755);
  WritingProcess process(tree / "folder/x.jprof");
  const ReadOnly read_only(tree / "folder");
  if (!read_only.effective()) GTEST_SKIP() << "cannot give up root here";
  const int committed = process.committed();
  const auto read = read_recording(tree / "folder/x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GE(static_cast<int>(read->readings.powers.size()), committed);
}

TEST(Live, ReadingDoesNotTakeTheWritersLocks) {
  const TempTree tree;
  int start[2];
  ASSERT_EQ(pipe(start), 0);
  // Forked before there is a writer: SQLite in it must find the locks through the kernel.
  const pid_t other = fork();
  if (other == 0) {
    char go = 0;
    if (read(start[0], &go, 1) != 1) _exit(2);
    try {
      run_sql(tree / "x.jprof", "PRAGMA journal_mode = DELETE");
    } catch (const SQLite::Exception&) {
      _exit(1);
    }
    _exit(0);
  }
  Writer writer = writer_with_sensor(tree / "x.jprof");
  ASSERT_TRUE(writer.append(numbered_powers(0, kBatch)));
  ASSERT_TRUE(writer.commit());
  expect_cut_off(read_recording(tree / "x.jprof"), kBatch);
  ASSERT_EQ(write(start[1], "g", 1), 1);
  int status = 0;
  waitpid(other, &status, 0);
  close(start[0]);
  close(start[1]);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "another process could end the log under the writer";
  ASSERT_TRUE(writer.append(numbered_powers(kBatch, kBatch)));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(read_recording(tree / "x.jprof")->readings.powers.size(), 2U * kBatch);
}

TEST(Live, TheMainFileAloneHasEveryCommitAndReadingItLeavesNothing) {
  const TempTree tree({{"copy/file", ""}});
  Writer writer = writer_with_sensor(tree / "x.jprof");
  for (int n = 0; n < 10 * kBatch; n += kBatch) {
    ASSERT_TRUE(writer.append(numbered_powers(n, kBatch)));
    ASSERT_TRUE(writer.commit());
    // Not by the library: reading and closing the file here would drop the writer's locks.
    const std::string copy =
        "cp '" + (tree / "x.jprof").string() + "' '" + (tree / "copy").string() + "'";
    ASSERT_EQ(std::system(copy.c_str()), 0);
    expect_cut_off(read_recording(tree / "copy/x.jprof"), n + kBatch);
  }
  EXPECT_THAT(names_in(tree / "copy"), ElementsAre("file", "x.jprof"));
}

TEST(Live, FinishWaitsForAReader) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  auto other = std::make_unique<SQLite::Database>((tree / "x.jprof").string());
  other->exec("BEGIN; SELECT * FROM run");
  std::thread leaves([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    other.reset();
  });
  const auto finished = writer.finish();
  leaves.join();
  EXPECT_TRUE(finished) << finished.error().message;
  EXPECT_THAT(names_in(tree.root()), ElementsAre("x.jprof"));
}

TEST(Live, FinishSaysWhenAReaderStays) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  const SQLite::Database other((tree / "x.jprof").string());
  EXPECT_EQ(const_cast<SQLite::Database&>(other).execAndGet("SELECT complete FROM run").getInt(),
            0);
  const auto finished = writer.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, Errc::kUnavailable);
  EXPECT_TRUE(read_recording(tree / "x.jprof")->run.complete);
}

}  // namespace
}  // namespace jouleprof::recording
