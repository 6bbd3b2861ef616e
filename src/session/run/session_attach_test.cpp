// Sessions that follow a process which runs already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "session/run/session_fixture.h"

namespace jouleprof::session {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;

// A process of this test's, to be attached to.
class AttachTest : public SessionTest {
 protected:
  void start(const std::string& script) {
    const std::string whole = ": > " + path("started") + "; " + script;
    pid = fork();
    if (pid == 0) {
      execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
      _exit(127);
    }
    while (!std::filesystem::exists(tree / "started")) {
      std::this_thread::sleep_for(milliseconds{1});
    }
    options.attach = pid;
  }
  void TearDown() override {
    if (pid == 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  pid_t pid = 0;
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

TEST_F(AttachTest, WhatCannotBeAttachedTo) {
  options.attach = 0x7ffffff0;
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kNotFound);
  options.attach = 0;
  EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kInvalidArgument);
  if (geteuid() != 0) {
    options.attach = 1;
    EXPECT_EQ(run(options, {}, &sink).error().code, Errc::kPermissionDenied);
  }
}

}  // namespace
}  // namespace jouleprof::session
