// Sessions that follow a process which runs already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "session/run/measured_processes.h"
#include "session/run/session_fixture.h"

namespace jouleprof::session {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;

// Processes of this test's, to be attached to.
class AttachTest : public SessionTest {
 protected:
  void start(const std::string& script) {
    std::filesystem::remove(tree / "started");
    const std::string whole = ": > " + path("started") + "; " + script;
    pid = fork();
    if (pid == 0) {
      execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
      _exit(127);
    }
    while (!std::filesystem::exists(tree / "started")) {
      std::this_thread::sleep_for(milliseconds{1});
    }
    options.attach.push_back(pid);
  }
  void TearDown() override {
    for (const pid_t one : options.attach) {
      if (one <= 1 || one == 0x7ffffff0) continue;
      kill(one, SIGKILL);
      waitpid(one, nullptr, 0);
    }
  }
  bool lists(pid_t one) const {
    return std::any_of(sink.recording.processes.begin(), sink.recording.processes.end(),
                       [&](const auto& p) { return p.pid == one && p.in_tree; });
  }
  pid_t pid = 0;  // of the last one
};

TEST_F(AttachTest, FollowsAProcessToItsEnd) {
  start("while :; do sleep 0.02; done");
  bool reported = false;
  options.on_snapshot = [&](const model::Snapshot&) {
    if (!std::exchange(reported, true)) kill(pid, SIGTERM);
  };
  const auto result = measure(meters_of(std::make_unique<FakeMeter>()));
  EXPECT_EQ(sink.recording.run.source, "attach");
  EXPECT_EQ(sink.recording.run.pid, pid);
  EXPECT_FALSE(result.exit_status);
  ASSERT_TRUE(sink.recording.run.work_end);
  ASSERT_FALSE(sink.recording.processes.empty());
  EXPECT_EQ(sink.recording.processes[0].pid, pid);
  EXPECT_THAT(sink.recording.idle_spans, IsEmpty());
}

TEST_F(AttachTest, SeveralProcessesLastUntilTheLastHasEnded) {
  start("while :; do sleep 0.02; done");
  start("while :; do sleep 0.02; done");
  const pid_t first = options.attach[0];
  const pid_t second = options.attach[1];
  int snapshots = 0;
  bool was_alive = false;  // the second, when the first was long gone
  options.on_snapshot = [&](const model::Snapshot&) {
    ++snapshots;
    if (snapshots == 2) kill(first, SIGTERM);
    if (snapshots == 12) was_alive = kill(second, SIGTERM) == 0;
  };
  measure(meters_of(std::make_unique<FakeMeter>()));
  EXPECT_TRUE(was_alive);
  EXPECT_TRUE(lists(first));
  EXPECT_TRUE(lists(second));
  EXPECT_FALSE(sink.recording.run.pid);  // no one process
}

TEST_F(AttachTest, AChildThatIsNamedAsWellIsListedOnce) {
  start("sh -c 'echo $$ > " + path("child") + "; while :; do sleep 0.02; done'; true");
  while (read_file(tree / "child").value_or("").find('\n') == std::string::npos) {
    std::this_thread::sleep_for(milliseconds{1});
  }
  const pid_t child = std::stoi(*read_file(tree / "child"));
  options.attach.insert(options.attach.begin(), {child, child});
  EXPECT_THAT(topmost(options.attach, "/"), testing::ElementsAre(pid));
  options.on_snapshot = [&](const model::Snapshot&) { kill(getpid(), SIGINT); };
  measure(meters_of(std::make_unique<FakeMeter>()));
  kill(child, SIGKILL);
  options.attach = {pid};
  int listed = 0;
  for (const auto& p : sink.recording.processes) listed += p.pid == child ? 1 : 0;
  EXPECT_EQ(listed, 1);
}

TEST_F(AttachTest, AnInterruptionEndsTheRecordingNotTheProcess) {
  start("while :; do sleep 0.02; done");
  options.on_snapshot = [](const model::Snapshot&) { kill(getpid(), SIGINT); };
  const auto result = measure();
  EXPECT_EQ(result.interrupted_by, SIGINT);
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_TRUE(sink.recording.run.complete);
}

TEST_F(AttachTest, ItsEnvironmentDecidesWhatIsVisible) {
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  start("while :; do sleep 0.02; done");
  unsetenv("CUDA_VISIBLE_DEVICES");
  options.on_snapshot = [](const model::Snapshot&) { kill(getpid(), SIGINT); };
  measure(meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0"),
                    std::make_unique<FakeMeter>("gpu1", "GPU-1")));
  EXPECT_FALSE(sink.recording.domains[0].visible);
  EXPECT_TRUE(sink.recording.domains[2].visible);
}

TEST_F(AttachTest, WhatOneOfThemCanSeeIsVisible) {
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  start("while :; do sleep 0.02; done");
  setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  start("while :; do sleep 0.02; done");
  unsetenv("CUDA_VISIBLE_DEVICES");
  options.on_snapshot = [](const model::Snapshot&) { kill(getpid(), SIGINT); };
  measure(meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0"),
                    std::make_unique<FakeMeter>("gpu1", "GPU-1"),
                    std::make_unique<FakeMeter>("gpu2", "GPU-2")));
  std::map<std::string, bool> visible;
  for (const auto& domain : sink.recording.domains) visible[domain.device] = domain.visible;
  EXPECT_TRUE(visible["gpu0"]);
  EXPECT_TRUE(visible["gpu1"]);
  EXPECT_FALSE(visible["gpu2"]);
}

TEST_F(AttachTest, WhatCannotBeAttachedTo) {
  options.attach = {0x7ffffff0};
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kNotFound);
  options.attach = {getpid(), 0x7ffffff0};
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kNotFound);
  options.attach = {0};
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kInvalidArgument);
  if (geteuid() != 0) {
    options.attach = {1};
    EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kPermissionDenied);
  }
  options.attach.clear();
}

}  // namespace
}  // namespace jouleprof::session
