#include "session/run/session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "base/file.h"
#include "session/run/session_fixture.h"
#include "session/sampling/sampling_fixture.h"

namespace jouleprof::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(SessionTest, RecordsACommandFromBeginningToEnd) {
  options.tool_version = "1.2.3";
  const auto result = shell("exit 4", meters_of(std::make_unique<FakeMeter>()));
  const auto& rec = sink.recording;
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_EQ(rec.run.exit_status, 4);
  EXPECT_EQ(rec.run.source, "run");
  EXPECT_EQ(rec.run.tool_version, "1.2.3");
  EXPECT_THAT(rec.run.command, ElementsAre("/bin/sh", "-c", "exit 4"));
  EXPECT_TRUE(rec.run.complete);
  ASSERT_TRUE(rec.run.work_begin && rec.run.work_end && rec.run.pid);
  EXPECT_LT(*rec.run.work_begin, *rec.run.work_end);
  EXPECT_THAT(result.warnings, IsEmpty());

  EXPECT_EQ(rec.domains.size(), 2u);
  EXPECT_EQ(rec.sensors.size(), 3u);
  EXPECT_FALSE(rec.clock_points.empty());
  ASSERT_TRUE(rec.overhead);
  EXPECT_GT(rec.overhead->peak_memory_bytes, 0u);

  // Idle lies before and after the work, and the readings cover it all and a little more.
  ASSERT_EQ(rec.idle_spans.size(), 2u);
  EXPECT_LE(rec.idle_spans[0].end, *rec.run.work_begin);
  EXPECT_GE(rec.idle_spans[1].begin, *rec.run.work_end);
  ASSERT_FALSE(rec.readings.counters.empty());
  EXPECT_LE(rec.readings.counters.front().before, *rec.run.work_begin);
  EXPECT_GE(rec.readings.counters.back().before, *rec.run.work_end + milliseconds{150});

  ASSERT_FALSE(rec.processes.empty());
  EXPECT_EQ(rec.processes[0].pid, *rec.run.pid);
  EXPECT_TRUE(rec.processes[0].in_tree);
  EXPECT_TRUE(rec.processes[0].end);
  EXPECT_GE(rec.process_readings.machine.size(), 2u);
}

TEST_F(SessionTest, ASignalledCommandHasTheShellsStatus) {
  EXPECT_EQ(shell("kill -9 $$").exit_status, 137);
}

TEST_F(SessionTest, ACommandThatCannotStart) {
  options.command = {path("nothing")};
  const auto result = measure(meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(result.exit_status, 127);
  ASSERT_TRUE(result.start_error);
  EXPECT_THAT(result.start_error->message, HasSubstr(path("nothing")));
  EXPECT_FALSE(sink.recording.run.work_begin);
}

TEST_F(SessionTest, NeedsNeitherMetersNorSink) {
  options.command = {"true"};
  const auto result = run(options, {}, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->exit_status, 0);
}

TEST_F(SessionTest, ManyShortLivedChildrenAreAccountedFor) {
  options.process_period = seconds{1};
  shell(
      "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; "
      "exec 3>" +
      path("times") + "; times >&3");
  // "times" prints user and system time of the shell, then of its children: 0m0.01s 0m0.02s
  const std::string text = *read_file(tree / "times");
  double expected = 0;
  int m[4];
  double s[4];
  ASSERT_EQ(sscanf(text.c_str(), "%dm%lfs %dm%lfs %dm%lfs %dm%lfs", &m[0], &s[0], &m[1], &s[1],
                   &m[2], &s[2], &m[3], &s[3]),
            8);
  for (int i = 0; i < 4; ++i) expected += m[i] * 60 + s[i];
  EXPECT_NEAR(jouleprof::seconds(recorded_cpu_time()), expected, 0.06);
}

TEST_F(SessionTest, OnesThatLiveOnAreNamed) {
  for (const bool use_cgroup : {false, true}) {
    options.use_cgroup = use_cgroup;
    sink.recording = {};
    // Its parent ends at once, and it has a session of its own.
    const auto result =
        shell("(setsid sleep 100 >/dev/null 2>&1 & echo $! > " + path("pid") + "); read -r pid < " +
              path("pid") + "; while ! grep -q sleep /proc/$pid/comm; do :; done");
    const pid_t pid = std::stoi(*read_file(tree / "pid"));
    EXPECT_EQ(kill(pid, 0), 0);
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_THAT(warnings(result),
                Contains(HasSubstr("still running when the command ended: sleep (pid " +
                                   std::to_string(pid))));
    EXPECT_EQ(sink.recording.idle_spans.size(), 1u);  // what came after was not idle
    ASSERT_NE(process_named("sleep"), nullptr);
    EXPECT_TRUE(process_named("sleep")->in_tree);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST_F(SessionTest, SignalsSentToTheToolReachTheCommand) {
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT}) {
    when_written("ready", [number] { kill(getpid(), number); });
    const auto result =
        shell("trap 'exit " + std::to_string(number) + "' TERM HUP USR1 USR2 INT; : > " +
              path("ready") + "; while :; do sleep 0.01; done");
    EXPECT_EQ(result.exit_status, number);
    EXPECT_FALSE(result.interrupted_by);
    std::filesystem::remove(tree / "ready");
  }
}

TEST_F(SessionTest, InterruptedWhileIdleNothingIsStarted) {
  options.idle_before = seconds{100};
  options.on_snapshot = [](const model::Snapshot&) { kill(getpid(), SIGINT); };
  const auto result = shell("echo > " + path("ran"), meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(result.exit_status, 130);
  EXPECT_EQ(result.interrupted_by, SIGINT);
  EXPECT_FALSE(std::filesystem::exists(tree / "ran"));
  EXPECT_TRUE(sink.recording.run.complete);
}

TEST_F(SessionTest, InterruptedAfterwardsItEndsEarlyAndKeepsTheStatus) {
  options.idle_after = seconds{100};
  // The file holds the shell's process; it is gone once its status was collected.
  options.on_snapshot = [this](const model::Snapshot&) {
    pid_t shell = 0;
    if (std::ifstream(tree / "shell") >> shell && kill(shell, 0) != 0) kill(getpid(), SIGINT);
  };
  const auto result =
      shell("echo $$ > " + path("shell") + "; exit 3", meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(result.exit_status, 3);
  ASSERT_TRUE(sink.recording.run.work_end);
  EXPECT_GE(sink.recording.readings.counters.back().before,
            *sink.recording.run.work_end + milliseconds{150});
}

TEST_F(SessionTest, AFullDiskDoesNotDisturbTheCommand) {
  FailingSink full(2);
  options.command = {"/bin/sh", "-c", "sleep 0.2; exit 6"};
  const auto result = run(options, meters_of(std::make_unique<FakeMeter>()), &full);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 6);
  ASSERT_TRUE(result->sink_error);
  EXPECT_EQ(result->sink_error->message, "disk full");
  EXPECT_THAT(warnings(*result), ElementsAre("the recording ends early: disk full"));
  EXPECT_FALSE(result->run.complete);
}

TEST_F(SessionTest, AMeterThatHangsDoesNotHoldUpTheEnd) {
  const auto gate = std::make_shared<Gate>();
  const auto destroyed = std::make_shared<Gate>();
  options.patience = milliseconds{50};
  const auto result = shell("exit 5", meters_of(std::make_unique<HangingMeter>(gate, destroyed),
                                                std::make_unique<FakeMeter>("gpu1")));
  EXPECT_EQ(result.exit_status, 5);
  EXPECT_THAT(warnings(result), ElementsAre(HasSubstr("'gpu7 counter' has not answered")));
  EXPECT_FALSE(sink.recording.readings.counters.empty());
  gate->open();
  destroyed->wait();
}

TEST_F(SessionTest, GpuProcessesGetIdsOfTheTreeOrOfOthers) {
  auto answer = [this]() -> Result<std::vector<model::GpuProcessUse>> {
    const auto text = read_file(tree / "pid");
    if (!text || !text->ends_with('\n')) return std::vector<model::GpuProcessUse>{};
    const HostTime now = HostClock::now();
    return std::vector<model::GpuProcessUse>{
        {static_cast<pid_t>(std::stoi(*text)), model::DomainId{0}, now, 0.5, 100},
        {getppid(), model::DomainId{0}, now, 0.25, 50},
        {0x7ffffff0, model::DomainId{0}, now, 0.25, 50}};
  };
  if (std::filesystem::read_symlink("/proc/self/ns/pid") != "pid:[4026531836]") {
    GTEST_SKIP() << "runs in a PID namespace";
  }
  shell("echo $$ > " + path("pid") + "; sleep 0.3",
        meters_of(std::make_unique<ProcessMeter>(answer)));
  std::map<model::ProcessId, model::Process> by_id;
  for (const auto& p : sink.recording.processes) by_id[p.id] = p;
  std::map<pid_t, int> seen;
  for (const auto& r : sink.recording.process_readings.gpu_processes)
    ++seen[by_id.at(r.process).pid];
  EXPECT_EQ(seen.size(), 2u);  // the third does not exist
  EXPECT_GT(seen[*sink.recording.run.pid], 0);
  EXPECT_GT(seen[getppid()], 0);
  for (const auto& [id, p] : by_id) EXPECT_EQ(p.in_tree, p.pid != getppid());
}

TEST_F(SessionTest, DevicesAreThoseSelectedAndVisible) {
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "1";
    return std::nullopt;
  };
  options.devices = {"gpu0"};
  shell("true", meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0"),
                          std::make_unique<FakeMeter>("gpu1", "GPU-1")));
  ASSERT_EQ(sink.recording.domains.size(), 2u);
  EXPECT_EQ(sink.recording.domains[0].device, "gpu0");
  EXPECT_FALSE(sink.recording.domains[0].visible);
  for (const auto& r : sink.recording.readings.counters) EXPECT_EQ(r.sensor, model::SensorId{0});
  options.devices = {"gpu5"};
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kInvalidArgument);
}

TEST_F(SessionTest, SnapshotsShowPowerAndEnergyOfEachInterval) {
  std::set<HostTime> begins;
  std::optional<model::DomainSnapshot> gpu;
  options.on_snapshot = [&](const model::Snapshot& snapshot) {
    begins.insert(snapshot.begin);
    EXPECT_EQ(snapshot.domains.size(), 2u);
    if (begins.size() == 2 && snapshot.domains[0].energy) gpu = snapshot.domains[0];
  };
  shell("sleep 0.4", meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(begins.size(), 3u);  // idle, work, idle
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->domain.device, "gpu0");
  EXPECT_GT(gpu->power, Power{});  // of the samples, or of the counter where the work took long
  EXPECT_EQ(gpu->provenance, model::Provenance::kMeasured);
  EXPECT_GE(gpu->energy->energy, Energy{});
  EXPECT_LT(gpu->age.value_or(seconds{100}), seconds{1});
}

TEST_F(SessionTest, TheMachineIsWatchedForSoManySnapshots) {
  options.snapshots = 5;
  std::vector<Duration> times;
  options.on_snapshot = [&](const model::Snapshot& snapshot) {
    if (!times.empty()) {
      EXPECT_GT(snapshot.elapsed, times.back());
    }
    times.push_back(snapshot.elapsed);
    EXPECT_EQ(snapshot.domains.size(), 2u);
  };
  const auto result = measure(meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(times.size(), 5u);
  EXPECT_FALSE(sink.recording.readings.counters.empty());
  EXPECT_EQ(sink.recording.run.source, "monitor");
  EXPECT_FALSE(result.exit_status);
}

TEST_F(SessionTest, TheMachineIsWatchedUntilStopped) {
  std::stop_source source;
  options.stop = source.get_token();
  std::thread stopper([&source] { source.request_stop(); });
  measure();
  stopper.join();
  options.stop = {};
  options.duration = milliseconds{20};
  measure();
  EXPECT_TRUE(sink.recording.run.complete);
}

// With a terminal of its own: Ctrl-C there ends the command, not the tool.
TEST_F(SessionTest, TheTerminalsInterruptIsLeftToTheCommand) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
    GTEST_SKIP() << "no terminal can be made here";
  }
  const std::string name = ptsname(terminal);
  const pid_t tool = fork();
  if (tool == 0) {
    setsid();
    const int fd = open(name.c_str(), O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    options.command = {
        "/bin/sh", "-c",
        "trap 'exit 5' INT; : > " + path("ready") + "; while :; do sleep 0.01; done"};
    const auto result = run(options, {}, nullptr);
    _exit(result && result->exit_status == 5 && !result->interrupted_by ? 0 : 1);
  }
  while (!std::filesystem::exists(tree / "ready")) std::this_thread::sleep_for(milliseconds{5});
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  int status = -1;
  waitpid(tool, &status, 0);
  close(terminal);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace jouleprof::session
