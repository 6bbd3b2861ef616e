#include "spans/procs/procfs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "spans/procs/procs_fixture.h"

namespace jouleprof::spans {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ParseProcessStat, TakesTheNameUpToTheLastBracket) {
  const auto stat = parse_process_stat(
      "42 (a) b (c)) R 7 1 1 0 -1 0 1 2 3 4 150 50 30 20 20 0 3 0 12345 4096 25 0 0");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->name, "a) b (c)");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->threads, 3);
  EXPECT_EQ(stat->start_ticks, 12345u);
  EXPECT_EQ(stat->cpu_time, Duration{seconds{2}} * 100 / sysconf(_SC_CLK_TCK));
  EXPECT_EQ(stat->children_cpu_time, Duration{milliseconds{500}} * 100 / sysconf(_SC_CLK_TCK));
  EXPECT_EQ(stat->rss_bytes, 25u * static_cast<unsigned>(sysconf(_SC_PAGESIZE)));
}

TEST(ParseProcessStat, RefusesWhatIsCutOffOrNone) {
  for (const char* text : {"", "42", "42 (", "42 (a)", "42 (a) R",
                           "42 (a) R 7 1 1 0 -1 0 1 2 3 4 150", "x (a) R 1 2 3"}) {
    EXPECT_FALSE(parse_process_stat(text)) << text;
  }
}

TEST(ProcessStat, AnEndedMainThreadIsNoEndedProcess) {
  ProcessStat stat;
  stat.state = 'Z';
  stat.threads = 4;
  EXPECT_FALSE(stat.ended());
  stat.threads = 1;
  EXPECT_TRUE(stat.ended());
}

TEST(ProcFs, ReadsTheMachine) {
  const TempTree tree{
      {"proc/stat", "cpu  100 200 300 4000 500 60 70 999 50 0\ncpu0 1 2 3\nprocesses 77\n"},
      {"proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n"}};
  const auto machine = ProcFs(tree.root()).machine(HostTime{seconds{5}});
  ASSERT_TRUE(machine) << machine.error().message;
  const auto hz = sysconf(_SC_CLK_TCK);
  EXPECT_EQ(machine->reading.at, HostTime{seconds{5}});
  EXPECT_EQ(machine->reading.busy_cpu_time,
            Duration{seconds{730}} / hz);  // neither stolen nor guest time
  EXPECT_EQ(machine->reading.total_cpu_time, Duration{seconds{5230}} / hz);
  EXPECT_EQ(machine->reading.memory_used_bytes, 600u * 1024);
  EXPECT_EQ(machine->forks, 77u);
}

TEST(ProcFs, AMachineItCannotReadIsAnError) {
  const TempTree tree{{"proc/stat", "cpu  1 2\n"}};
  EXPECT_EQ(ProcFs(tree.root()).machine({}).error().code, Errc::kCorrupt);
  EXPECT_EQ(ProcFs(tree / "nothing").machine({}).error().code, Errc::kNotFound);
}

TEST(ProcFs, MemorySumsPrivatePages) {
  const TempTree tree{{"proc/9/smaps_rollup",
                       "0-1 ---p 0 00:00 0 [rollup]\nRss: 100 kB\nPss: 64 kB\nPss_Dirty: 3 kB\n"
                       "Private_Clean: 8 kB\nPrivate_Dirty: 16 kB\nPrivate_Hugetlb: 2048 kB\n"}};
  ProcFs procs(tree.root());
  const auto memory = procs.memory(9);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->pss_bytes, 64u * 1024);
  EXPECT_EQ(memory->uss_bytes, 2072u * 1024);
  EXPECT_FALSE(procs.memory(10));  // not there: absent, not zero
}

TEST(ProcFs, ThePidInsideAContainerIsTheLastOne) {
  const TempTree tree{{"proc/9/status", "Name:\tx\nNSpid:\t9\t14\t1\nx:\n"},
                      {"proc/10/status", "Name:\tx\nNSpid:\t10\n"}};
  ProcFs procs(tree.root());
  EXPECT_EQ(procs.own_pid(9), 1);
  EXPECT_FALSE(procs.own_pid(10));
}

TEST(ProcFs, ReadsThisProcess) {
  ProcFs procs;
  const auto stat = procs.stat(getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, getpid());
  EXPECT_EQ(stat->parent, getppid());
  const HostTime start = ProcFs::start_time(stat->start_ticks);
  EXPECT_LE(start, HostClock::now());
  EXPECT_GT(start, HostClock::now() - std::chrono::hours{1});
  EXPECT_NE(procs.command_line(getpid()).find("procs_test"), std::string::npos);
  EXPECT_EQ(procs.stat(0x7ffffff0).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof::spans
