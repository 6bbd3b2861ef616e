// A process that forks while it measures, and gets rid of the monitor in the child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"
#include "session/windows/live_monitor.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

TEST(LiveMonitorForkTest, DeletedInTheChildItLeavesAllToTheParent) {
  MemorySink memory;
  LiveOptions options;
  options.environment = [](const std::string&) { return std::nullopt; };
  options.open_sink = [&memory]() -> Result<std::unique_ptr<Sink>> {
    return std::make_unique<SinkReference>(memory);
  };
  auto monitor = LiveMonitor::open(std::move(options), meters_of(std::make_unique<FakeMeter>()));
  ASSERT_TRUE(monitor) << monitor.error().message;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // ends a child that hangs
    (*monitor)->add({1, 2, 0, 0});
    monitor->reset();
    _exit(memory.recording.run.complete ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const HostTime now = HostClock::now();
  EXPECT_TRUE((*monitor)->energy(now - 1ms, now, 5s));
  monitor->reset();
  EXPECT_TRUE(memory.recording.run.complete);
  EXPECT_TRUE(memory.recording.windows.empty());
}

}  // namespace
}  // namespace jouleprof::session
