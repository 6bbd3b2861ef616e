#include "spans/procs/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "spans/procs/procs_fixture.h"

namespace jouleprof::spans {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST_F(FakeTree, WarnsOfShortChildrenWhoseTimeTheKernelDrops) {
  for (const bool ignores : {false, true}) {
    auto t = tree(100);
    fake.put({.pid = 100, .ignores_children = ignores});
    fake.put({.pid = 101, .parent = 100, .cpu_ticks = 2});
    ledger.look(t, 1);
    EXPECT_FALSE(ledger.changes.warning);
    fake.remove(101);
    ledger.look(t, 2);
    EXPECT_EQ(ledger.changes.warning.has_value(), ignores);
    EXPECT_THAT(ledger.changes.warning.value_or(""), HasSubstr(ignores ? "100 (worker)" : ""));
    fake.put({.pid = 102, .parent = 100, .cpu_ticks = 2});
    ledger.look(t, 3);
    fake.remove(102);
    ledger.look(t, 4);
    EXPECT_FALSE(ledger.changes.warning);  // once
  }
}

// The second process would be found at the next fork only, and its time be the parent's.
TEST_F(FakeTree, AProcessWithAPidThatEndedSinceTheLastScanKeepsItsOwnTime) {
  fake.put({.pid = 100, .start_ticks = 1});
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 20, .start_ticks = 5});
  auto t = tree(100);
  ledger.look(t, 1);
  const auto first = ledger.processes[101].id;
  fake.put({.pid = 100, .children_ticks = 20, .start_ticks = 1});
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 7, .start_ticks = 9});
  fake.put({.pid = 102, .parent = 101, .cpu_ticks = 3, .start_ticks = 9});
  ledger.look(t, 2);
  EXPECT_NE(ledger.processes[101].id, first);
  EXPECT_EQ(ledger.last[101].cpu_time, ticks(7));
  EXPECT_EQ(ledger.last[102].cpu_time, ticks(3));
  EXPECT_EQ(ledger.last[100].unseen_children_cpu_time, Duration{});
  EXPECT_TRUE(t.knows(101));
  fake.put({.pid = 101, .parent = 100, .cpu_ticks = 120, .start_ticks = 9});
  ledger.look(t, 3, true);  // no fork since
  EXPECT_EQ(ledger.last[101].cpu_time, ticks(120));
  EXPECT_EQ(t.identify(101, at(3), ledger.changes), ledger.processes[101].id);
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

TEST_F(FakeTree, WhereTheKernelGivesNoMemoryThereIsNone) {
  fake.put({.pid = 100, .rss_pages = 0});
  auto t = tree(100);
  ledger.look(t, 1);
  EXPECT_EQ(ledger.last[100].rss_bytes, std::nullopt);
  fake.put({.pid = 100, .cpu_ticks = 1, .rss_pages = 3});
  ledger.look(t, 2);
  EXPECT_GT(ledger.last[100].rss_bytes, 0u);
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

// The driver names the pid between two scans.
TEST_F(FakeTree, APidThatAnotherProgramHasBetweenTwoScansIsNotOfTheTree) {
  fake.put({.pid = 1, .parent = 0});
  fake.put({.pid = 100});
  fake.put({.pid = 101, .parent = 100, .start_ticks = 5});
  auto t = tree(100);
  ledger.look(t, 1);
  const auto first = ledger.processes[101].id;
  TreeChanges out;
  EXPECT_EQ(t.identify(101, at(1), out), first);
  fake.put({.pid = 101, .parent = 100, .start_ticks = 9});  // of the tree
  EXPECT_EQ(t.identify(101, at(2), out), first);
  EXPECT_TRUE(out.processes.empty());
  fake.put({.pid = 101, .parent = 1, .name = "foreign", .start_ticks = 9});
  const auto other = t.identify(101, at(2), out);
  EXPECT_NE(other, first);
  ASSERT_EQ(out.processes.size(), 1u);
  EXPECT_EQ(out.processes[0].id, other);
  EXPECT_FALSE(out.processes[0].in_tree);
  EXPECT_EQ(out.processes[0].name, "foreign");
  ledger.look(t, 3);
  EXPECT_EQ(t.identify(101, at(3), out), other);
  EXPECT_EQ(out.processes.size(), 1u);
  // One that began after the list is not in it.
  fake.put({.pid = 100, .start_ticks = 2'000'000'000});
  EXPECT_EQ(t.identify(100, at(3), out), ledger.processes[100].id);
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

TEST_F(FakeTree, ANameThatChangesIsReported) {
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
  EXPECT_GT(t.memory_cost(), Duration{});
  ledger.look(t, 1000004, false, true);
  EXPECT_FALSE(ledger.last[100].pss_bytes);
  EXPECT_EQ(t.memory_cost(), Duration{});
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

}  // namespace
}  // namespace jouleprof::spans
