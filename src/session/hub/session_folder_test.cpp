#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "session/hub/hub_socket.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class SessionFolderTest : public testing::Test {
 protected:
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(tree_ / ""), fs::directory_iterator()));
  }
  TempTree tree_;
};

TEST_F(SessionFolderTest, IsPrivateAndGoesWithItsOwner) {
  {
    const auto folder = SessionFolder::create(tree_ / "");
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
  EXPECT_EQ(SessionFolder::create(tree_ / "missing").error().code, Errc::kUnavailable);
}

TEST_F(SessionFolderTest, WhatAKilledSessionLeftIsRemoved) {
  const std::string parent = (tree_ / "").string();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    setenv("XDG_RUNTIME_DIR", parent.c_str(), 1);
    const auto socket = HubSocket::in_session_folder();
    [[maybe_unused]] const auto written = write(ready[1], socket ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  SessionFolder::remove_dead(parent, 0s);
  EXPECT_EQ(entries(), 1u);  // its owner lives
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  SessionFolder::remove_dead(parent, 1h);
  EXPECT_EQ(entries(), 1u);  // too young to be sure
  SessionFolder::remove_dead(parent, 0s);
  EXPECT_EQ(entries(), 0u);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(SessionFolderTest, NothingElseIsRemoved) {
  for (const char* name : {"jouleprof-spool-AbCdEf", "jouleprof-AbCdE", "jouleprof-A.CdEf"}) {
    fs::create_directory(tree_ / name);
  }
  fs::create_directory(tree_ / "jouleprof-GhIjKl");
  std::ofstream(tree_ / "jouleprof-GhIjKl" / "something") << "of the user";
  fs::create_directory_symlink(tree_ / "jouleprof-GhIjKl", tree_ / "jouleprof-MnOpQr");
  std::ofstream(tree_ / "jouleprof-StUvWx") << "a file";
  SessionFolder::remove_dead(tree_ / "", 0s);
  EXPECT_EQ(entries(), 6u);
}

}  // namespace
}  // namespace jouleprof::session
