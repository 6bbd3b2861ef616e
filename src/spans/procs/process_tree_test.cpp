#include "spans/procs/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "spans/procs/fake_proc.h"

namespace jouleprof::spans {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

HostTime at(int s) { return HostTime{seconds{s}}; }
Duration ticks(int n) { return Duration{seconds{n}} / sysconf(_SC_CLK_TCK); }

// What a recording would hold: the last figures of every process.
struct Ledger {
  std::map<pid_t, model::Process> processes;
  std::map<pid_t, model::ProcessReading> last;
  TreeChanges changes;

  void look(ProcessTree& tree, int s, bool no_forks = false, bool all = false) {
    changes.clear();
    tree.update(at(s), changes, no_forks, all);
    std::map<model::ProcessId, pid_t> pids;
    for (const auto& p : changes.processes) processes[p.pid] = p;
    for (const auto& [pid, p] : processes) pids[p.id] = pid;
    for (const auto& r : changes.readings) last[pids.at(r.process)] = r;
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> out;
    for (const auto& [pid, p] : processes) out.push_back(pid);
    return out;
  }
  Duration total() const {
    Duration sum{};
    for (const auto& [pid, r] : last) sum += r.cpu_time + r.unseen_children_cpu_time;
    return sum;
  }
};

class FakeTree : public testing::Test {
 protected:
  ProcessTree tree(pid_t root, pid_t adopter = 0) {
    return following({.root = root, .adopter = adopter});
  }
  ProcessTree following(const TreeOptions& options) {
    ProcessTree t(procs());
    t.follow(options);
    return t;
  }
  ProcFs& procs() {
    if (!procs_) procs_.emplace(fake.tree.root());
    return *procs_;
  }
  FakeProc fake;
  Ledger ledger;

 private:
  std::optional<ProcFs> procs_;
};

TEST_F(FakeTree, FindsDescendantsWithoutChildrenFiles) {
  fake.put({.pid = 1, .parent = 0});
  fake.put({.pid = 100});
  fake.put({.pid = 90, .parent = 101});  // pids have wrapped: the grandchild's is lower
  fake.put({.pid = 101, .parent = 100});
  fake.put({.pid = 200});
  auto t = tree(100);
  ledger.look(t, 1);
  EXPECT_THAT(ledger.pids(), ElementsAre(90, 100, 101));
  EXPECT_EQ(ledger.processes[101].command_line, "worker --flag");
  EXPECT_EQ(ledger.processes[101].parent_pid, 100);
  EXPECT_TRUE(ledger.processes[101].in_tree);
}

TEST_F(FakeTree, FindsDescendantsOfEveryThread) {
  fake.put({.pid = 100, .threads = 2});
  fake.children(100, 100, "101 ");
  fake.children(100, 105, "102 103 ");
  for (pid_t pid : {101, 102, 103}) {
    fake.put({.pid = pid, .parent = 100});
    fake.children(pid, pid, "");
  }
  fake.put({.pid = 300, .parent = 100});  // in no list: only a scan would find it
  auto t = tree(100);
  ledger.look(t, 1);
  EXPECT_THAT(ledger.pids(), ElementsAre(100, 101, 102, 103));
}

TEST_F(FakeTree, AProcessOnceSeenStaysWhenItIsReparented) {
  fake.put({.pid = 100});
  fake.put({.pid = 101, .parent = 100});
  auto t = tree(100);
  ledger.look(t, 1);
  fake.put({.pid = 101, .parent = 1, .cpu_ticks = 50});
  fake.put({.pid = 102, .parent = 101});
  ledger.look(t, 2);
  EXPECT_THAT(ledger.pids(), ElementsAre(100, 101, 102));
  EXPECT_EQ(ledger.last[101].cpu_time, ticks(50));
}

TEST_F(FakeTree, TheAdoptersNewChildrenAreOrphansOfTheTree) {
  fake.put({.pid = 50});                 // the tool
  fake.put({.pid = 60, .parent = 50});   // a child of its own
  fake.put({.pid = 100, .parent = 50});  // the command
  auto t = tree(100, 50);
  ledger.look(t, 1);
  EXPECT_THAT(ledger.pids(), ElementsAre(100));
  fake.put({.pid = 120, .parent = 50, .cpu_ticks = 3, .state = 'Z'});
  ledger.look(t, 2);
  EXPECT_THAT(ledger.pids(), ElementsAre(100, 120));
  EXPECT_THAT(t.zombies_of(50), ElementsAre(120));
  EXPECT_EQ(ledger.last[120].cpu_time, ticks(3));
  EXPECT_EQ(ledger.processes[120].end, at(2));
}

TEST_F(FakeTree, CpuTimeIsCountedOnce) {
  fake.put({.pid = 100, .cpu_ticks = 10});
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 20});
  fake.put({.pid = 102, .parent = 101, .cpu_ticks = 30});
  auto t = tree(100);
  ledger.look(t, 1);
  EXPECT_EQ(ledger.total(), ticks(60));

  // 102 used 5 more, ended and was waited for by 101, which also waited for a child never seen (7).
  fake.remove(102);
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 21, .children_ticks = 42});
  ledger.look(t, 2);
  EXPECT_EQ(ledger.last[101].unseen_children_cpu_time, ticks(12));
  EXPECT_EQ(ledger.total(), ticks(10 + 21 + 35 + 7));
  EXPECT_EQ(ledger.processes[102].end, at(2));

  // 101 used 4 more and passes all on.
  fake.remove(101);
  fake.put({.pid = 100, .cpu_ticks = 11, .children_ticks = 25 + 42});
  ledger.look(t, 3);
  EXPECT_EQ(ledger.last[100].unseen_children_cpu_time, ticks(4));
  EXPECT_EQ(ledger.total(), ticks(11 + 25 + 42));
}

TEST_F(FakeTree, ABranchThatEndsBetweenTwoLooksIsCountedOnce) {
  fake.put({.pid = 100});
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 20});
  fake.put({.pid = 102, .parent = 101, .cpu_ticks = 30});
  auto t = tree(100);
  ledger.look(t, 1);
  fake.remove(101);
  fake.remove(102);
  fake.put({.pid = 100, .children_ticks = 20 + 30 + 6});
  ledger.look(t, 2);
  EXPECT_EQ(ledger.last[100].unseen_children_cpu_time, ticks(6));
  EXPECT_EQ(ledger.total(), ticks(56));
}

TEST_F(FakeTree, APidGivenOutAgainIsAnotherProcess) {
  fake.put({.pid = 100});
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 20, .start_ticks = 5});
  auto t = tree(100);
  ledger.look(t, 1);
  const auto first = ledger.processes[101].id;
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 1, .start_ticks = 9});
  ledger.look(t, 2);
  ledger.look(t, 3);
  EXPECT_NE(ledger.processes[101].id, first);
  EXPECT_EQ(ledger.last[101].cpu_time, ticks(1));
}

TEST_F(FakeTree, WhatStandsStillIsWrittenOnceAndAgainBeforeItMoves) {
  fake.put({.pid = 100, .cpu_ticks = 5});
  auto t = tree(100);
  ledger.look(t, 1);
  EXPECT_EQ(ledger.changes.readings.size(), 1u);
  ledger.look(t, 2);
  ledger.look(t, 3);
  EXPECT_THAT(ledger.changes.readings, IsEmpty());
  fake.put({.pid = 100, .cpu_ticks = 9});
  ledger.look(t, 4);
  ASSERT_EQ(ledger.changes.readings.size(), 2u);
  EXPECT_EQ(ledger.changes.readings[0].at, at(3));
  EXPECT_EQ(ledger.changes.readings[0].cpu_time, ticks(5));
  EXPECT_EQ(ledger.changes.readings[1].at, at(4));
  ledger.look(t, 5, false, true);
  EXPECT_EQ(ledger.changes.readings.size(), 1u);  // asked for all
}

TEST_F(FakeTree, ANameThatChangesIsTold) {
  fake.put({.pid = 100, .name = "sh"});
  auto t = tree(100);
  ledger.look(t, 1);
  fake.put({.pid = 100, .name = "python3"});
  ledger.look(t, 2);
  EXPECT_EQ(ledger.processes[100].name, "python3");
  EXPECT_EQ(ledger.processes[100].command_line, "python3 --flag");
  ledger.look(t, 3);
  EXPECT_THAT(ledger.changes.processes, IsEmpty());
}

TEST_F(FakeTree, NothingIsSearchedWhenNothingWasForked) {
  fake.put({.pid = 100});
  auto t = tree(100);
  ledger.look(t, 1);
  fake.put({.pid = 101, .parent = 100});
  ledger.look(t, 2, true);
  EXPECT_THAT(ledger.pids(), ElementsAre(100));
  ledger.look(t, 3);
  EXPECT_THAT(ledger.pids(), ElementsAre(100, 101));
}

TEST_F(FakeTree, MemoryIsReadSeldom) {
  fake.put({.pid = 100});
  fake.tree.write("proc/100/smaps_rollup", "Pss: 4 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 2 kB\n");
  auto t = following({.root = 100, .memory_period = seconds{5}, .memory_budget = 1e9});
  ledger.look(t, 1000000);
  ASSERT_TRUE(ledger.last[100].pss_bytes);
  EXPECT_EQ(*ledger.last[100].uss_bytes, 3u * 1024);
  ledger.look(t, 1000004, false, true);
  EXPECT_FALSE(ledger.last[100].pss_bytes);
  ledger.look(t, 1000005, false, true);
  EXPECT_TRUE(ledger.last[100].pss_bytes);
}

TEST_F(FakeTree, ProcessesOutsideAreListedWhenADriverNamesThem) {
  fake.put({.pid = 100});
  fake.put({.pid = 500, .name = "other"});
  auto t = tree(100);
  ledger.look(t, 1);
  TreeChanges out;
  const auto inside = t.identify(100, at(1), out);
  EXPECT_EQ(inside, ledger.processes[100].id);
  EXPECT_THAT(out.processes, IsEmpty());
  const auto outside = t.identify(500, at(1), out);
  ASSERT_TRUE(outside);
  ASSERT_EQ(out.processes.size(), 1u);
  EXPECT_FALSE(out.processes[0].in_tree);
  EXPECT_EQ(out.processes[0].name, "other");
  EXPECT_EQ(t.identify(500, at(2), out), outside);
  EXPECT_EQ(out.processes.size(), 1u);
  EXPECT_FALSE(t.identify(501, at(2), out));
  fake.remove(100);
  ledger.look(t, 3);
  EXPECT_EQ(t.identify(100, at(3), out), inside);  // it has just ended
}

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
  EXPECT_LE(ledger.total(), used());
  EXPECT_GE(ledger.total(), used() - milliseconds{40});
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
