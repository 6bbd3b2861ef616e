// The tree of real processes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "spans/procs/procs_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Real processes below a subreaper, as a session follows them.
class RealTree : public testing::Test {
 protected:
  void SetUp() override { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  void TearDown() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }

  // Starts a shell script and looks at it every few milliseconds until it ends. Reaps as a session
  // does: what has been seen as a zombie.
  void run(const char* script, const Cgroup* group = nullptr) {
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      char byte = 0;
      while (::read(go[0], &byte, 1) < 0) {
      }
      execl("/bin/sh", "sh", "-c", script, nullptr);
      _exit(127);
    }
    root = pid;
    if (group != nullptr) {
      const auto added = group->add(pid);
      ASSERT_TRUE(added) << added.error().message;
    }
    ProcFs procs;
    ProcessTree t(procs);
    t.follow({.root = pid, .adopter = getpid(), .group = group});
    ASSERT_EQ(write(go[1], "g", 1), 1);
    close(go[0]);
    close(go[1]);
    for (int look = 1;; ++look) {
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
      ledger.look(t, look);
      for (const pid_t zombie : t.zombies_of(getpid())) {
        if (zombie != pid) waitpid(zombie, nullptr, WNOHANG);
      }
      if (info.si_pid == pid) break;
      std::this_thread::sleep_for(milliseconds{3});
    }
    ASSERT_EQ(wait4(pid, nullptr, 0, &usage), pid);
    alive = t.alive();
  }
  Duration used() const {
    return seconds{usage.ru_utime.tv_sec + usage.ru_stime.tv_sec} +
           std::chrono::microseconds{usage.ru_utime.tv_usec + usage.ru_stime.tv_usec};
  }

  // A script that starts a process, whose parent ends at once, and waits until it is what it will
  // be.
  std::string daemonise() const {
    return fmt::format(
        "(setsid sleep 30 >/dev/null 2>&1 & echo $! > {0}); read -r pid < {0}; "
        "while ! grep -q sleep /proc/$pid/comm; do :; done",
        (tree / "pid").string());
  }

  TempTree tree;
  pid_t root = 0;
  Ledger ledger;
  rusage usage{};
  std::vector<model::Process> alive;
};

TEST_F(RealTree, ShortLivedChildrenAddUpToWhatTheKernelSays) {
  run("i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done; "
      "sh -c 'j=0; while [ $j -lt 60000 ]; do j=$((j+1)); done; /bin/true'");
  // The kernel shows a root's own and its children's times to 10 ms each, user and system apart.
  EXPECT_LE(ledger.total(), used() + std::chrono::microseconds{10});  // rusage truncates to 1 us
  EXPECT_GE(ledger.total(), used() - milliseconds{40});
}

TEST_F(RealTree, ShortOrphansAddUpToWhatTheKernelSays) {
  const auto of_children = [] {
    rusage all{};
    getrusage(RUSAGE_CHILDREN, &all);
    return seconds{all.ru_utime.tv_sec + all.ru_stime.tv_sec} +
           std::chrono::microseconds{all.ru_utime.tv_usec + all.ru_stime.tv_usec};
  };
  const Duration before = of_children();
  run(fmt::format("mkfifo {0}; (i=0; while [ $i -lt 60 ]; do i=$((i+1)); "
                  "(sh -c 'j=0; while [ $j -lt 12000 ]; do j=$((j+1)); done' &); done) > {0} & "
                  "cat {0}",
                  (tree / "ends").string())
          .c_str());
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  // The last ones may end after the last look. Ticks of 10 ms would lose 5 ms of each.
  EXPECT_GE(ledger.total(), of_children() - before - milliseconds{80});
}

TEST_F(RealTree, ADaemonisedProcessStaysInTheTree) {
  run(daemonise().c_str());
  ASSERT_EQ(alive.size(), 1u);
  EXPECT_EQ(alive[0].name, "sleep");
  kill(alive[0].pid, SIGKILL);
  waitpid(alive[0].pid, nullptr, 0);
}

TEST_F(RealTree, AGroupOfItsOwnListsTheSame) {
  auto group = Cgroup::create("jouleprof-test-" + std::to_string(getpid()));
  if (!group) GTEST_SKIP() << group.error().message;
  const auto folder = group->path();
  {
    const Cgroup mine = std::move(*group);
    run((daemonise() + "; sh -c 'sleep 0.05; true'").c_str(), &mine);
    if (HasFatalFailure()) return;
    EXPECT_GE(ledger.processes.size(), 3u);
    ASSERT_EQ(alive.size(), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));  // though one lived on
  kill(alive[0].pid, SIGKILL);
  waitpid(alive[0].pid, nullptr, 0);
}

}  // namespace
}  // namespace jouleprof::spans
