#include "spans/procs/procfs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "spans/procs/procs_fixture.h"
#include "tests/support/temp_tree.h"

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

model::Rank rank_in(const std::map<std::string, std::string>& environment) {
  return rank_of([&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  });
}

TEST(Identity, EachLauncherSetsItsOwnVariables) {
  EXPECT_EQ(rank_in({{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}}),
            (model::Rank{5, 1, 8, "torchrun", "", ""}));
  EXPECT_EQ(rank_in({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "2"}}),
            (model::Rank{0, 0, 2, "openmpi", "", ""}));
  EXPECT_EQ(rank_in({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}),
            (model::Rank{3, std::nullopt, 4, "pmi", "", ""}));
  EXPECT_EQ(rank_in({{"SLURM_PROCID", "7"},
                     {"SLURM_LOCALID", "3"},
                     {"SLURM_NTASKS", "16"},
                     {"SLURM_JOB_ID", "4711"},
                     {"SLURM_STEP_ID", "0"}}),
            (model::Rank{7, 3, 16, "slurm", "4711", "0"}));
}

TEST(Identity, UsersHaveTheirNameOrTheirNumber) {
  const TempTree tree;
  const std::string number = std::to_string(::geteuid());
  tree.write("passwd", "other:x:" + number + "1:0::/:/bin/sh\nada:x:" + number + ":0::/:/bin/sh\n");
  EXPECT_EQ(user_here(tree.root() / "passwd"), "ada");
  const char* named = std::getenv("USER");
  EXPECT_EQ(user_here(tree.root() / "absent"), named != nullptr && *named != 0 ? named : number);
}

TEST(Identity, NodesAreThoseOfTheJob) {
  const auto nodes_in = [](const std::map<std::string, std::string>& environment) {
    return node_list_of([&](const char* name) {
      const auto found = environment.find(name);
      return found != environment.end() ? found->second.c_str() : nullptr;
    });
  };
  EXPECT_EQ(nodes_in({{"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_NODELIST", "n1"}}), "n[1-4]");
  EXPECT_EQ(nodes_in({{"SLURM_NODELIST", "n1"}}), "n1");
  EXPECT_EQ(nodes_in({}), "");
}

// srun starts one torchrun on each host, which starts one process for each GPU.
TEST(Identity, TheInnerLauncherNumbersTheProcesses) {
  EXPECT_EQ(rank_in({{"SLURM_PROCID", "1"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_JOB_ID", "4711"},
                     {"RANK", "9"},
                     {"LOCAL_RANK", "1"}}),
            (model::Rank{9, 1, std::nullopt, "torchrun", "4711", ""}));
}

TEST(Identity, WhatIsNoNumberIsAbsent) {
  EXPECT_EQ(rank_in({}), model::Rank{});
  for (const char* value : {"", "x", "-1", "3x", " 3", "4294967296", "1.5"}) {
    EXPECT_EQ(rank_in({{"RANK", value}, {"LOCAL_RANK", "1"}}), model::Rank{}) << value;
    EXPECT_EQ(rank_in({{"RANK", "1"}, {"LOCAL_RANK", value}}).local, std::nullopt) << value;
  }
}

TEST(Identity, TheBootIdIsTheKernels) {
  const TempTree tree;
  EXPECT_EQ(boot_id(tree.root()), "");
  tree.write("sys/kernel/random/boot_id", "0f1e2d3c-0000-4000-8000-123456789abc\n");
  EXPECT_EQ(boot_id(tree.root()), "0f1e2d3c-0000-4000-8000-123456789abc");
  EXPECT_EQ(boot_id().size(), 36U);
}

}  // namespace

}  // namespace jouleprof::spans
