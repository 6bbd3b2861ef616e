#include "spans/procs/machine_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "spans/procs/procs_fixture.h"

namespace jouleprof::spans {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTick = milliseconds{10};
const std::string kDocker = "/system.slice/docker-" + std::string(64, 'a') + ".scope";

int ticks_now() {
  const auto point = ClockPoint::now();
  return static_cast<int>((point.host.time_since_epoch() + point.suspended) / kTick);
}

// A machine whose figures a test sets.
class Machine {
 public:
  Machine() {
    proc.tree.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    proc.tree.write("proc/self/mountinfo",
                    "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                    "32 23 0:29 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    busy(0);
  }
  void busy(int ticks) {
    forks_ += 1;
    proc.tree.write("proc/stat",
                    fmt::format("cpu {} 0 0 1000 0 0 0 0 0 0\nprocesses {}\n", ticks, forks_));
  }
  void put(const FakeProcess& p, const std::string& cgroup = "0::/\n", unsigned user = 1000) {
    proc.put(p);
    proc.tree.write(fmt::format("proc/{}/cgroup", p.pid), cgroup);
    proc.tree.write(fmt::format("proc/{}/status", p.pid),
                    fmt::format("Name:\tx\nUid:\t{}\t0\t0\t0\n", user));
  }
  void group(const std::string& path, Duration used) {
    proc.tree.write(
        "sys/fs/cgroup" + path + "/cpu.stat",
        fmt::format("usage_usec {}\nuser_usec 0\n",
                    std::chrono::duration_cast<std::chrono::microseconds>(used).count()));
  }
  void group_v1(const std::string& path, Duration used) {
    proc.tree.write("sys/fs/cgroup/cpuacct" + path + "/cpuacct.usage",
                    fmt::format("{}\n", used.count()));
  }
  MachineLook look() {
    auto result = processes_ ? processes_->look() : first();
    EXPECT_TRUE(result) << result.error().message;
    return result ? std::move(*result) : MachineLook{};
  }
  FakeProc proc;

 private:
  Result<MachineLook> first() {
    processes_ = std::make_unique<MachineProcesses>(proc.tree.root());
    return processes_->look();
  }
  int forks_ = 0;
  std::unique_ptr<MachineProcesses> processes_;
};

const ListedProcess* find(const MachineLook& look, pid_t pid) {
  const auto found = std::find_if(look.processes.begin(), look.processes.end(),
                                  [pid](const auto& p) { return p.pid == pid; });
  return found == look.processes.end() ? nullptr : &*found;
}

Duration unlisted(const MachineLook& look) {
  Duration sum{};
  for (const auto& u : look.unlisted) sum += u.cpu_time;
  return sum;
}

TEST(MachineProcesses, CountFromTheFirstLook) {
  Machine machine;
  machine.put({.pid = 10, .cpu_ticks = 500}, "0::" + kDocker + "\n", 7);
  machine.busy(1000);
  const auto first = machine.look();
  ASSERT_NE(find(first, 10), nullptr);
  EXPECT_EQ(find(first, 10)->cpu_time, Duration{});
  EXPECT_EQ(find(first, 10)->owner.container, std::string(64, 'a'));
  EXPECT_EQ(find(first, 10)->owner.user, 7u);
  EXPECT_EQ(first.others, Duration{});

  machine.put({.pid = 10, .cpu_ticks = 530}, "0::" + kDocker + "\n", 7);
  machine.busy(1100);
  const auto second = machine.look();
  EXPECT_EQ(find(second, 10)->cpu_time, 30 * kTick);
  EXPECT_EQ(find(second, 10)->id, find(first, 10)->id);
  EXPECT_EQ(second.others, 70 * kTick);
}

TEST(MachineProcesses, AProcessThatBeganSinceCountsWhole) {
  Machine machine;
  machine.look();
  machine.put({.pid = 10, .cpu_ticks = 12, .start_ticks = ticks_now() + 100});
  machine.put({.pid = 11, .cpu_ticks = 12, .start_ticks = 1000});  // begun long ago: not known when
  machine.busy(20);
  const auto look = machine.look();
  EXPECT_EQ(find(look, 10)->cpu_time, 12 * kTick);
  EXPECT_EQ(find(look, 11)->cpu_time, Duration{});
}

TEST(MachineProcesses, AnotherProcessWithThePidHasAnotherId) {
  Machine machine;
  machine.put({.pid = 10, .cpu_ticks = 500, .start_ticks = 1000});
  const auto first = machine.look();
  machine.put({.pid = 10, .cpu_ticks = 2, .start_ticks = ticks_now() + 100});
  machine.busy(10);
  const auto second = machine.look();
  EXPECT_NE(find(first, 10)->id, find(second, 10)->id);
  EXPECT_EQ(find(second, 10)->cpu_time, 2 * kTick);
  machine.proc.remove(10);
  EXPECT_EQ(find(machine.look(), 10), nullptr);
}

// The kernel counts what begins: /proc is listed only then. What ended is noticed at each look.
TEST(MachineProcesses, AreListedAnewWhenOneBegan) {
  Machine machine;
  machine.put({.pid = 10});
  machine.put({.pid = 11});
  EXPECT_EQ(machine.look().processes.size(), 2u);
  machine.put({.pid = 12});
  EXPECT_EQ(find(machine.look(), 12), nullptr);
  machine.proc.remove(10);
  for (int i = 0; i < 2; ++i) {
    const auto look = machine.look();
    ASSERT_EQ(look.processes.size(), 1u);
    EXPECT_EQ(look.processes[0].pid, 11);
  }
  machine.busy(0);
  EXPECT_NE(find(machine.look(), 12), nullptr);
}

// Some sandboxes' /proc/stat has a zero there.
TEST(MachineProcesses, AreListedAtEachLookWhereTheKernelCountsNone) {
  Machine machine;
  machine.proc.tree.write("proc/stat", "cpu 0 0 0 1000 0 0 0 0 0 0\nprocesses 0\n");
  machine.put({.pid = 10});
  EXPECT_EQ(machine.look().processes.size(), 1u);
  machine.put({.pid = 12});
  EXPECT_EQ(machine.look().processes.size(), 2u);
}

TEST(MachineProcesses, ShortProcessesAreChargedToTheirGroup) {
  Machine machine;
  machine.put({.pid = 10, .cpu_ticks = 100}, "0::" + kDocker + "\n");
  machine.group(kDocker, seconds{5});
  machine.busy(0);
  machine.look();
  machine.put({.pid = 10, .cpu_ticks = 110}, "0::" + kDocker + "\n");
  machine.group(kDocker, seconds{5} + 90 * kTick);
  machine.busy(100);
  const auto look = machine.look();
  EXPECT_EQ(find(look, 10)->cpu_time, 10 * kTick);
  ASSERT_EQ(look.unlisted.size(), 1u);
  EXPECT_EQ(look.unlisted[0].owner.container, std::string(64, 'a'));
  EXPECT_EQ(look.unlisted[0].cpu_time, 80 * kTick);
  EXPECT_EQ(look.others, 10 * kTick);
}

TEST(MachineProcesses, ShortProcessesOfANewGroupAreItsOwn) {
  Machine machine;
  machine.group("/old.service", seconds{5});
  machine.put({.pid = 9}, "0::/system\n");
  machine.group("/system", seconds{9});
  machine.look();
  machine.put({.pid = 10, .cpu_ticks = 10, .start_ticks = ticks_now() + 100},
              "0::" + kDocker + "\n");
  machine.group(kDocker, 90 * kTick);
  machine.put({.pid = 11, .start_ticks = ticks_now() + 100}, "0::/old.service\n");
  machine.group("/old.service", seconds{5} + 20 * kTick);  // it had processes before the first look
  machine.put({.pid = 12, .start_ticks = ticks_now() + 100}, "0::/system/a.service\n");
  machine.group("/system/a.service", 30 * kTick);
  machine.group("/system", seconds{9} + 30 * kTick);
  machine.put({.pid = 13, .start_ticks = ticks_now() + 100}, "0::/unseen.service\n");
  machine.group("/unseen.service", seconds{100});  // more than the machine used since
  machine.busy(170);
  const auto look = machine.look();
  std::map<std::string, Duration> found;
  for (const auto& u : look.unlisted) found[u.owner.container + u.owner.unit] = u.cpu_time;
  EXPECT_EQ(found, (std::map<std::string, Duration>{{std::string(64, 'a'), 80 * kTick},
                                                    {"old.service", 20 * kTick},
                                                    {"a.service", 30 * kTick}}));
  EXPECT_EQ(unlisted(look), 130 * kTick);
  EXPECT_EQ(look.others, 30 * kTick);
}

TEST(MachineProcesses, GroupsThatNoLookFindAreChargedToTheOwnerAbove) {
  Machine machine;
  const std::string job = "/system.slice/slurmstepd.scope/job_9";
  const std::string pod = "/kubepods/pod01234567-0123-0123-0123-0123456789ab";
  machine.put({.pid = 10}, "0::" + job + "/step_batch/user\n");
  for (const auto* below : {"", "/step_batch", "/step_batch/user"}) machine.group(job + below, {});
  machine.busy(0);
  machine.look();
  machine.put({.pid = 11, .start_ticks = ticks_now() + 100},
              "0::" + pod + "/" + std::string(64, 'b') + "\n");
  machine.group(pod + "/" + std::string(64, 'b'), 10 * kTick);
  machine.group(pod, 40 * kTick);  // with the container before
  machine.group(job, 50 * kTick);  // a step began and ended
  machine.busy(90);
  const auto look = machine.look();
  std::map<std::string, Duration> found;
  for (const auto& u : look.unlisted) found[u.owner.job + u.owner.pod] += u.cpu_time;
  EXPECT_EQ(found, (std::map<std::string, Duration>{
                       {"9", 50 * kTick}, {"01234567-0123-0123-0123-0123456789ab", 40 * kTick}}));
  EXPECT_EQ(look.others, Duration{});
}

TEST(MachineProcesses, TheStepsOfAProcessesTimeAreNoShortProcess) {
  Machine machine;
  machine.put({.pid = 10, .cpu_ticks = 0}, "0::/a.service\n");
  machine.group("/a.service", {});
  machine.look();
  Duration used{};
  Duration listed{};
  Duration short_ones{};
  for (int i = 1; i <= 40; ++i) {
    used += milliseconds{17};
    machine.put({.pid = 10, .cpu_ticks = static_cast<int>(used / kTick)}, "0::/a.service\n");
    machine.group("/a.service", used);
    machine.busy(2 * i);
    const auto look = machine.look();
    listed += find(look, 10)->cpu_time;
    short_ones += unlisted(look);
  }
  EXPECT_EQ(short_ones, Duration{});
  EXPECT_EQ(listed, used / kTick * kTick);
}

TEST(MachineProcesses, TheTimeOfAGroupBelowIsNotItsParents) {
  Machine machine;
  machine.put({.pid = 10}, "0::/a.service\n");
  machine.put({.pid = 11}, "0::/a.service/job/inner\n");
  machine.group("/a.service", {});
  machine.group("/a.service/job/inner", {});
  machine.look();
  machine.group("/a.service", seconds{3});
  machine.group("/a.service/job/inner", seconds{3});
  machine.busy(300);
  EXPECT_EQ(unlisted(machine.look()), seconds{3});  // not six

  // Its last time stays with the group above.
  machine.proc.remove(11);
  std::filesystem::remove_all(machine.proc.tree / "sys/fs/cgroup/a.service/job");
  machine.group("/a.service", seconds{4});
  machine.busy(400);
  EXPECT_EQ(unlisted(machine.look()), seconds{4} - seconds{3});
}

TEST(MachineProcesses, OfCgroupV1) {
  Machine machine;
  const std::string text = "5:cpu,cpuacct:/slurm/uid_5/job_9/step_0\n0::/\n";
  machine.put({.pid = 10}, text);
  machine.group_v1("/slurm/uid_5/job_9/step_0", seconds{1});
  machine.look();
  machine.group_v1("/slurm/uid_5/job_9/step_0", seconds{3});
  machine.busy(200);
  const auto look = machine.look();
  ASSERT_EQ(look.unlisted.size(), 1u);
  EXPECT_EQ(look.unlisted[0].owner.job, "9");
  EXPECT_EQ(look.unlisted[0].cpu_time, seconds{2});
}

TEST(MachineProcesses, TheKernelsThreadsAreOthers) {
  Machine machine;
  machine.put({.pid = 2, .parent = 0});
  machine.put({.pid = 40, .parent = 2, .name = "kworker"});
  machine.put({.pid = 1, .parent = 0});
  machine.look();
  machine.put({.pid = 40, .parent = 2, .cpu_ticks = 50, .name = "kworker"});
  machine.busy(50);
  const auto look = machine.look();
  ASSERT_EQ(look.processes.size(), 1u);
  EXPECT_EQ(look.processes[0].pid, 1);
  EXPECT_EQ(look.others, 50 * kTick);
}

TEST(MachineProcesses, FollowAProcessIntoItsJob) {
  Machine machine;
  machine.put({.pid = 10}, "0::/system.slice/slurmd.service\n");
  EXPECT_EQ(find(machine.look(), 10)->owner.job, "");
  machine.put({.pid = 10}, "0::/system.slice/slurmstepd.scope/job_3/step_0/user/task_0\n");
  EXPECT_EQ(find(machine.look(), 10)->owner.job, "3");
}

// Looks at two processes of two jobs, each with one CPU; then the first moves into the second's job
// in the middle between two looks. By job, what the machine's looks say is what was used.
class MovedProcess : public testing::Test {
 protected:
  static constexpr int kSecond = 100;  // ticks
  static std::string path(int job) { return fmt::format("/slurmstepd.scope/job_{}/step_0", job); }
  void put(pid_t pid, int job, int ticks) {
    machine.put({.pid = pid, .cpu_ticks = ticks}, "0::" + path(job) + "\n");
  }
  std::map<std::string, Duration> look() {
    machine.busy(busy_ += 2 * kSecond);
    const auto look = machine.look();
    std::map<std::string, Duration> by_job;
    for (const auto& p : look.processes) by_job[p.owner.job] += p.cpu_time;
    for (const auto& u : look.unlisted) by_job[u.owner.job] += u.cpu_time;
    by_job["others"] = look.others;
    return by_job;
  }
  void start(int looks) {
    for (int k = 0; k <= looks; ++k) {
      put(10, 1, used_ = k * kSecond);
      put(11, 2, used_);
      machine.group(path(1), used_ * kTick);
      machine.group(path(2), used_ * kTick);
      look();
    }
  }
  Machine machine;
  int busy_ = 0;
  int used_ = 0;
};

TEST_F(MovedProcess, IsChargedToItsJobAtOnce) {
  start(5);
  put(10, 2, used_ + kSecond);
  put(11, 2, used_ + kSecond);
  machine.group(path(1), (used_ + kSecond / 2) * kTick);
  machine.group(path(2), (used_ + kSecond + kSecond / 2) * kTick);
  auto by_job = look();
  EXPECT_EQ(by_job["1"], kSecond / 2 * kTick);
  EXPECT_EQ(by_job["2"], 3 * kSecond / 2 * kTick);
  EXPECT_EQ(by_job["others"], Duration{});
  put(10, 2, used_ + 2 * kSecond);
  put(11, 2, used_ + 2 * kSecond);
  machine.group(path(2), (used_ + 3 * kSecond + kSecond / 2) * kTick);
  by_job = look();
  EXPECT_EQ(by_job["1"], Duration{});
  EXPECT_EQ(by_job["2"], 2 * kSecond * kTick);
}

TEST_F(MovedProcess, OfAGroupThatIsGone) {
  start(5);
  machine.proc.tree.write("sys/fs/cgroup" + path(1) + "/cpu.stat", "");  // of a removed group
  put(10, 2, used_ + kSecond);
  put(11, 2, used_ + kSecond);
  machine.group(path(2), (used_ + 2 * kSecond) * kTick);
  auto by_job = look();
  EXPECT_EQ(by_job["1"], Duration{});
  EXPECT_EQ(by_job["2"], 2 * kSecond * kTick);
}

// While the job that it left used nothing, its time was not read.
TEST_F(MovedProcess, OfAnIdleGroupCountsNothingTwice) {
  start(5);
  const int begin = used_;
  for (int k = 1; k <= 20; ++k) {
    machine.busy(busy_ += 2 * kSecond);
    put(10, 2, begin + k * kSecond);
    put(11, 2, begin + k * kSecond);
    put(12, 1, 0);
    machine.group(path(1), begin * kTick);
    machine.group(path(2), (begin + 2 * k * kSecond) * kTick);
    look();
  }
  put(10, 2, begin + 21 * kSecond);
  put(11, 2, begin + 21 * kSecond);
  put(12, 1, kSecond / 2);
  machine.group(path(1), (begin + kSecond / 2) * kTick);
  machine.group(path(2), (begin + 42 * kSecond) * kTick);
  auto by_job = look();
  EXPECT_EQ(by_job["1"], kSecond / 2 * kTick);
  EXPECT_EQ(by_job["2"], 2 * kSecond * kTick);
}

// No other process is in the group to which another program moved it, and its own is at rest.
TEST_F(MovedProcess, OutOfAnIdleGroupIsFoundWithinSixtyLooks) {
  start(5);
  machine.put({.pid = 20}, "0::/a.service\n");
  machine.group("/a.service", {});
  for (int k = 0; k < 5; ++k) look();
  machine.group(path(3), {});
  std::map<std::string, Duration> by_job;
  for (int k = 1; k <= 61; ++k) {
    put(20, 3, k * kSecond);
    machine.group(path(3), k * kSecond * kTick);
    by_job = look();
  }
  EXPECT_EQ(by_job["3"], kSecond * kTick);
}

// What a group used before it was known is in the time of the group above it, once.
TEST_F(MovedProcess, IntoAGroupBelowIsNotCountedTwice) {
  start(5);
  put(10, 1, used_ + kSecond);
  put(11, 2, used_ + kSecond);
  machine.put({.pid = 12, .cpu_ticks = 50, .start_ticks = ticks_now() + 100},
              "0::" + path(2) + "/task_0\n");
  machine.group(path(1), (used_ + kSecond) * kTick);
  machine.group(path(2), (used_ + kSecond + 50) * kTick);
  machine.group(path(2) + "/task_0", 50 * kTick);
  auto by_job = look();
  EXPECT_EQ(by_job["1"], kSecond * kTick);
  EXPECT_EQ(by_job["2"], (kSecond + 50) * kTick);
}

TEST(MachineProcesses, NameAGroupOfASchedulerThatIsNoJob) {
  Machine machine;
  machine.put({.pid = 10}, "0::/system.slice/slurmstepd.scope/job_3/step_0\n");
  EXPECT_EQ(machine.look().unknown_job, "");
  machine.put({.pid = 10}, "0::/system.slice/slurmstepd.scope/new-3/step_0\n");
  EXPECT_EQ(machine.look().unknown_job, "/system.slice/slurmstepd.scope/new-3/step_0");
}

// After the first looks the real user is read again rarely, and when the effective one changed.
TEST(MachineProcesses, FollowAProcessToAnotherUser) {
  Machine machine;
  const auto user_after = [&](int looks) {
    std::optional<std::uint32_t> user;
    for (int i = 0; i < looks; ++i) {
      machine.busy(0);
      user = find(machine.look(), 10)->owner.user;
    }
    return user;
  };
  constexpr int kSomeLooks = 20;
  constexpr int kManyLooks = 61;
  machine.put({.pid = 10}, "0::/\n", 6);
  EXPECT_EQ(user_after(kSomeLooks), 6u);
  if (geteuid() == 0) {  // changes the owner of a file
    machine.put({.pid = 10}, "0::/\n", 7);
    const auto folder = machine.proc.tree / "proc/10";
    ASSERT_EQ(chown(folder.c_str(), 7, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(user_after(kSomeLooks), 7u);
  }
  machine.put({.pid = 10}, "0::/\n", 8);
  EXPECT_EQ(user_after(kManyLooks), 8u);
}

TEST(MachineProcesses, OwnersBehindANamespaceAreNamedAsHidden) {
  Machine machine;
  machine.put({.pid = 10}, "0::/../../x\n");
  EXPECT_TRUE(machine.look().hides_owners);
}

TEST(MachineProcesses, OfOtherUsersThatProcHidesAreNamedAsHidden) {
  Machine machine;
  machine.put({.pid = 10});
  EXPECT_TRUE(machine.look().hides_processes);
  machine.put({.pid = 1, .parent = 0});
  EXPECT_FALSE(machine.look().hides_processes);
}

TEST(MachineProcesses, AnIdentityIsTheSameForAnotherTool) {
  Machine machine;
  machine.put({.pid = 10, .start_ticks = 1000});
  const auto first = find(machine.look(), 10)->id;
  MachineProcesses again(machine.proc.tree.root());
  const auto look = again.look();
  ASSERT_TRUE(look);
  EXPECT_EQ(find(*look, 10)->id, first);
  EXPECT_NE(first, 0u);
}

TEST(MachineProcesses, AMachineThatCannotBeReadIsAnError) {
  const TempTree tree{{"proc/stat", "no\n"}};
  EXPECT_FALSE(MachineProcesses(tree.root()).look());
}

// Threads that began and ended between two looks count, in less than the 10 ms of /proc/PID/stat.
TEST(MachineProcesses, TheTimeOfARealProcessIsThatOfAllItsThreads) {
  ASSERT_TRUE(ProcessClock("/").time(getpid()));
  MachineProcesses processes;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(processes.look());
  timespec begin{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  std::thread([&] {
    timespec now{};
    do {
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec < 3'000'000);
  }).join();
  const auto look = processes.look();
  ASSERT_TRUE(look);
  EXPECT_GE(find(*look, getpid())->cpu_time, milliseconds{3});
  EXPECT_NE(find(*look, getpid())->cpu_time % kTick, Duration{});
}

// One that did not run is not read further; once it runs, its time counts and its name is read.
TEST(MachineProcesses, ARealProcessThatSleptAndThenWorkedIsCounted) {
  int wake[2];
  int woke[2];
  ASSERT_EQ(pipe(wake), 0);
  ASSERT_EQ(pipe(woke), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(wake[1]);
    char c = 0;
    while (::read(wake[0], &c, 1) == 1) {
      timespec used{};
      while (used.tv_nsec < 3'000'000) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
      (void)!write(woke[1], &c, 1);
    }
    _exit(0);
  }
  close(wake[0]);
  MachineProcesses processes;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(processes.look());
  const auto asleep = processes.look();
  ASSERT_NE(find(*asleep, child), nullptr);
  EXPECT_EQ(find(*asleep, child)->cpu_time, Duration{});
  char c = 'x';
  ASSERT_EQ(write(wake[1], &c, 1), 1);
  ASSERT_EQ(read(woke[0], &c, 1), 1);
  const auto awake = processes.look();
  EXPECT_GT(find(*awake, child)->cpu_time, Duration{});
  EXPECT_EQ(find(*awake, child)->id, find(*asleep, child)->id);
  close(wake[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(find(*processes.look(), child), nullptr);
}

TEST(ProcessClock, IsThatOfTheCLibrary) {
  const ProcessClock clock("/");
  clockid_t id{};
  ASSERT_EQ(clock_getcpuclockid(getppid(), &id), 0);
  timespec time{};
  const auto before = clock.time(getppid());
  ASSERT_EQ(clock_gettime(id, &time), 0);
  const auto after = clock.time(getppid());
  const Duration between = seconds{time.tv_sec} + Duration{time.tv_nsec};
  EXPECT_LE(before, between);
  EXPECT_GE(after, between);
  EXPECT_FALSE(clock.time(0));
  EXPECT_FALSE(clock.time(-1));
}

TEST(ProcessClock, IsForThePidsOfThisNamespace) {
  EXPECT_FALSE(ProcessClock("/nonexistent").time(getpid()));
  EXPECT_FALSE(ProcessClock("/").time(1 << 22)) << "there is no such pid";
}

TEST(MachineProcesses, FindThisProcess) {
  MachineProcesses processes;
  const auto look = processes.look();
  ASSERT_TRUE(look) << look.error().message;
  ASSERT_NE(find(*look, getpid()), nullptr);
  EXPECT_EQ(find(*look, getpid())->owner.user, getuid());
}

}  // namespace
}  // namespace jouleprof::spans
