#include "session/run/job_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

std::string key_in(Variables variables) {
  return job_key([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  });
}

Variables torchrun(const std::string& rank, const std::string& port = "29500") {
  return {{"RANK", rank},           {"LOCAL_RANK", rank},  {"WORLD_SIZE", "8"},
          {"MASTER_ADDR", "node1"}, {"MASTER_PORT", port}, {"TORCHELASTIC_RUN_ID", "none"}};
}

Variables slurm(const std::string& rank, const std::string& step = "0") {
  return {{"SLURM_PROCID", rank},
          {"SLURM_NTASKS", "8"},
          {"SLURM_JOB_ID", "4711"},
          {"SLURM_STEP_ID", step}};
}

TEST(JobKey, IsThatOfAllRanksOfAJobAndOfNoOther) {
  for (auto* variables : {+[] { return torchrun("0"); }, +[] { return slurm("0"); }}) {
    EXPECT_NE(key_in(variables()), "");
  }
  EXPECT_EQ(key_in(torchrun("0")), key_in(torchrun("7")));
  EXPECT_NE(key_in(torchrun("0")), key_in(torchrun("0", "29501")));
  EXPECT_EQ(key_in(slurm("0")), key_in(slurm("7")));
  EXPECT_NE(key_in(slurm("0")), key_in(slurm("0", "1")));
  EXPECT_NE(key_in(slurm("0")), key_in(torchrun("0")));
  // Without names of a job: all have one launcher.
  const Variables mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_TRUE(key_in(mpi).ends_with("/openmpi/" + std::to_string(::getppid())));
}

TEST(JobKey, IsEmptyWithoutALauncherAndOfAJobOfOneProcess) {
  EXPECT_EQ(key_in({}), "");
  EXPECT_EQ(key_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
  EXPECT_EQ(key_in({{"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}}), "");
}

// `work` in another process, which then is killed.
template <class Work>
void in_killed_process(const Work& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
}

TEST(RecorderLock, HasOneOwner) {
  const TempTree tree;
  const auto first = RecorderLock::take(tree.root(), "job");
  ASSERT_TRUE(first && *first);
  const auto second = RecorderLock::take(tree.root(), "job");
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
  const auto other = RecorderLock::take(tree.root(), "other job");
  EXPECT_TRUE(other && *other);
}

TEST(RecorderLock, PublishesTheSocketWhileItLives) {
  const TempTree tree;
  EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "");
  {
    auto lock = RecorderLock::take(tree.root(), "job");
    ASSERT_TRUE(lock && *lock);
    EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "");
    (*lock)->publish("/run/socket", "/home/a.jprof");
    EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "/run/socket");
  }
  EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "");
}

TEST(RecorderLock, NamesTheRecordingOfOneThatEnded) {
  const TempTree tree;
  {
    auto lock = RecorderLock::take(tree.root(), "job");
    ASSERT_TRUE(lock && *lock);
    EXPECT_EQ((*lock)->left().recording, "");
    (*lock)->publish("/run/socket", "/home/a.jprof");
  }
  const auto next = RecorderLock::take(tree.root(), "job");
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->left().recording, "/home/a.jprof");
  EXPECT_FALSE((*next)->left().was_killed);
}

TEST(RecorderLock, OfAKilledOwnerIsFreeAndSaysSo) {
  const TempTree tree;
  in_killed_process([&] {
    // The child's parent is this test: the launcher of both differs otherwise.
    auto lock = RecorderLock::take(tree.root(), "job");
    if (lock && *lock) (*lock)->publish("/run/socket", "/home/a.jprof");
  });
  const auto next = RecorderLock::take(tree.root(), "job");
  ASSERT_TRUE(next && *next);
}

TEST(RecorderLock, OneThatIsKilledAtOnceKeepsWhatTheOneBeforeLeft) {
  const TempTree tree;
  {
    auto lock = RecorderLock::take(tree.root(), "job");
    (*lock)->publish("/run/socket", "/home/a.jprof");
  }
  {
    auto lock = RecorderLock::take(tree.root(), "job");
    ASSERT_TRUE(lock && *lock);
    // What a successor reads if this one is killed here.
    std::ifstream file(fs::directory_iterator(tree.root())->path());
    std::string socket, recording;
    std::getline(file, socket);
    std::getline(file, recording);
    EXPECT_EQ(socket, "");
    EXPECT_EQ(recording, "/home/a.jprof");
  }
}

TEST(RecorderLock, IsNotToBeJoinedBeforeItPublishedItsSocket) {
  const TempTree tree;
  auto lock = RecorderLock::take(tree.root(), "job");
  ASSERT_TRUE(lock && *lock);
  (*lock)->announce("/home/a.jprof");
  EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "");
  (*lock)->publish("/run/socket", "/home/a.jprof");
  EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "/run/socket");
}

TEST(RecorderLock, WithoutARecordingLeavesNothing) {
  const TempTree tree;
  { const auto lock = RecorderLock::take(tree.root(), "job"); }
  EXPECT_TRUE(fs::is_empty(tree.root()));
}

TEST(RecorderLock, RefusesAFileThatOthersCanWrite) {
  const TempTree tree;
  {
    auto lock = RecorderLock::take(tree.root(), "job");
    (*lock)->publish("/s", "/r");
  }
  const fs::path file = fs::directory_iterator(tree.root())->path();
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(RecorderLock::take(tree.root(), "job").error().code, Errc::kUnavailable);
  EXPECT_EQ(RecorderLock::socket(tree.root(), "job"), "");
}

TEST(RecorderLock, RemovesWhatWasLeftLongAgo) {
  const TempTree tree;
  {
    auto lock = RecorderLock::take(tree.root(), "old");
    (*lock)->publish("/s", "/r");
  }
  const fs::path old = fs::directory_iterator(tree.root())->path();
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours{2});
  const auto held = RecorderLock::take(tree.root(), "held");
  EXPECT_FALSE(fs::exists(old));
  const fs::path own = fs::directory_iterator(tree.root())->path();
  fs::last_write_time(own, fs::file_time_type::clock::now() - std::chrono::hours{2});
  const auto third = RecorderLock::take(tree.root(), "third");
  EXPECT_TRUE(fs::exists(own));  // its owner lives
}

}  // namespace
}  // namespace jouleprof::session
