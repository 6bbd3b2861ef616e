#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/file.h"
#include "base/process/last_resort.h"
#include "session/run/measured_processes.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

class ChildTest : public testing::Test {
 protected:
  void SetUp() override { signals = std::move(*SignalStream::create()); }

  int run(const std::vector<std::string>& command) {
    auto child = Child::prepare(command, *signals);
    EXPECT_TRUE(child) << child.error().message;
    failure = child->release();
    return failure ? failure->exit_status : child->reap();
  }
  int shell(const std::string& script) { return run({"/bin/sh", "-c", script}); }
  std::string written() { return read_file(tree / "out").value_or("nothing"); }
  std::string out() { return (tree / "out").string(); }

  std::unique_ptr<SignalStream> signals;
  std::optional<StartFailure> failure;
  TempTree tree;
};

TEST_F(ChildTest, ItsStatusIsTheShells) {
  EXPECT_EQ(run({"true"}), 0);
  EXPECT_EQ(shell("exit 3"), 3);
  EXPECT_EQ(shell("exit 255"), 255);
  EXPECT_EQ(shell("kill -TERM $$"), 143);
  EXPECT_EQ(shell("kill -KILL $$"), 137);
}

TEST_F(ChildTest, WhatCannotBeFoundIs127) {
  EXPECT_EQ(run({"no-such-program-at-all"}), 127);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error.code, Errc::kNotFound);
  EXPECT_THAT(failure->error.message, testing::HasSubstr("'no-such-program-at-all'"));
  EXPECT_EQ(run({(tree / "nothing").string()}), 127);
  EXPECT_EQ(run({""}), 127);
}

TEST_F(ChildTest, WhatCannotBeExecutedIs126) {
  tree.write("data", "no program\n");
  EXPECT_EQ(run({(tree / "data").string()}), 126);
  EXPECT_EQ(failure->error.code, Errc::kPermissionDenied);
  EXPECT_EQ(run({tree.root().string()}), 126);  // a folder
  tree.write("script", "#!/no/such/interpreter\n");
  chmod((tree / "script").c_str(), 0755);
  EXPECT_EQ(run({(tree / "script").string()}), 126);
  EXPECT_THAT(failure->error.message, testing::HasSubstr("interpreter"));
}

TEST_F(ChildTest, StreamsEnvironmentAndGroupAreTheTools) {
  tree.write("in", "from stdin");
  setenv("JOULEPROF_CHILD_TEST", "passed on", 1);
  const int in = dup(0);
  const int file = open((tree / "in").c_str(), O_RDONLY | O_CLOEXEC);
  dup2(file, 0);
  const int status =
      shell("{ cat; echo; echo $JOULEPROF_CHILD_TEST; cut -d' ' -f5 /proc/$$/stat; } > " + out());
  dup2(in, 0);
  close(in);
  close(file);
  unsetenv("JOULEPROF_CHILD_TEST");
  EXPECT_EQ(status, 0);
  EXPECT_EQ(written(), "from stdin\npassed on\n" + std::to_string(getpgrp()) + "\n");
}

TEST_F(ChildTest, NoDescriptorOfOursIsLeftOpen) {
  const auto open_ones = [] {
    std::vector<std::string> targets;
    const auto names = list_folder("/proc/self/fd").value();
    for (const auto& fd : names) {
      std::error_code err;
      const auto target = std::filesystem::read_symlink("/proc/self/fd/" + fd, err).string();
      if (target.starts_with("socket:") || target.starts_with("pipe:")) targets.push_back(target);
    }
    return targets;
  };
  const auto before = open_ones();
  auto other = Child::prepare({"true"}, *signals);  // its ends are open here meanwhile
  EXPECT_EQ(shell("ls -l /proc/self/fd > " + out()), 0);
  for (const auto& target : open_ones()) {
    if (std::find(before.begin(), before.end(), target) != before.end()) continue;
    EXPECT_THAT(written(), testing::Not(testing::HasSubstr(target)));
  }
}

TEST_F(ChildTest, SignalsAreAsTheToolWasGivenThem) {
  EXPECT_EQ(shell("grep -E '^Sig(Ign|Cgt|Blk)' /proc/self/status > " + out()), 0);
  std::string mine = *read_file("/proc/self/status");
  const auto field = [](const std::string& text, const std::string& key) {
    const auto at = text.find(key);
    return std::stoull(text.substr(at + key.size(), 20), nullptr, 16);
  };
  // Signals 32 and 33 belong to the C library: a sanitizer's runtime sets them as it likes.
  constexpr auto kOurs = ~(0b11ull << 31);
  EXPECT_EQ(field(written(), "SigIgn:") & kOurs, field(mine, "SigIgn:") & kOurs);
  EXPECT_EQ(field(written(), "SigBlk:"), 0u);
}

TEST_F(ChildTest, AVariableReplacesTheToolsOwn) {
  const auto environment = [&](const std::vector<std::string>& variables) {
    auto child = Child::prepare({"/bin/sh", "-c", "env | grep ^JOULEPROF_TEST > " + out()},
                                *signals, variables);
    EXPECT_TRUE(child) << child.error().message;
    EXPECT_FALSE(child->release());
    child->reap();
    return written();
  };
  setenv("JOULEPROF_TEST", "outer", 1);
  setenv("JOULEPROF_TEST2", "2", 1);
  EXPECT_THAT(environment({"JOULEPROF_TEST=a b"}),
              testing::AllOf(testing::HasSubstr("JOULEPROF_TEST=a b\n"),
                             testing::HasSubstr("JOULEPROF_TEST2=2\n"),
                             testing::Not(testing::HasSubstr("outer"))));
  EXPECT_THAT(environment({}), testing::HasSubstr("JOULEPROF_TEST=outer\n"));
  unsetenv("JOULEPROF_TEST");
  unsetenv("JOULEPROF_TEST2");
}

TEST_F(ChildTest, WhatWasIgnoredStaysIgnored) {
  signals.reset();
  for (const int number : {SIGHUP, SIGCHLD}) signal(number, SIG_IGN);
  signals = std::move(*SignalStream::create());
  EXPECT_EQ(shell("exit 9"), 9);  // though SIGCHLD was ignored
  // Without a shell, which may have its own idea of SIGCHLD.
  const int before = dup(1);
  const int file = open(out().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  dup2(file, 1);
  EXPECT_EQ(run({"grep", "SigIgn", "/proc/self/status"}), 0);
  dup2(before, 1);
  close(before);
  close(file);
  signals.reset();
  for (const int number : {SIGHUP, SIGCHLD}) signal(number, SIG_DFL);
  const auto ignored = std::stoull(written().substr(7), nullptr, 16);
  EXPECT_TRUE(ignored & (1ull << (SIGHUP - 1)));
  EXPECT_TRUE(ignored & (1ull << (SIGCHLD - 1)));
}

TEST_F(ChildTest, OneNeverReleasedLeavesNothing) {
  pid_t pid = 0;
  {
    const auto child = Child::prepare({"/bin/sh", "-c", "echo ran > " + out()}, *signals);
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_FALSE(child->has_ended());
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(written(), "nothing");
}

using ChildDeathTest = ChildTest;

TEST_F(ChildDeathTest, OneNeverReleasedIsNoCommandThatHasEnded) {
  char shell[] = "sh";
  char option[] = "-c";
  char ends_with_5[] = "exit 5";
  char* const command[] = {shell, option, ends_with_5, nullptr};
  EXPECT_EXIT(
      {
        last_resort::install(7, nullptr);
        last_resort::has_to_run(command);
        { const auto child = Child::prepare({"true"}, *signals); }
        std::terminate();
      },
      testing::ExitedWithCode(5), "without being measured");
}

TEST_F(ChildTest, OneKilledBeforehandHasEnded) {
  auto child = Child::prepare({"true"}, *signals);
  ASSERT_TRUE(child);
  child->send(SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child->pid()), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(child->release());
  EXPECT_TRUE(child->has_ended());
  EXPECT_EQ(child->reap(), 137);
}

}  // namespace
}  // namespace jouleprof::session
