// Windows that a program hands over end up in the recording.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "session/windows/under_run_fixture.h"
#include "tests/support/sanitizers.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

class UnderRunWindowsTest : public UnderRunTest {
 protected:
  // A child that does `work` with a monitor of its own, and is killed then.
  pid_t killed_after(const std::function<void(LiveMonitor&)>& work) {
    const std::string path = server_->path();
    // The server's thread has begun by then: the address sanitizer's allocator, which a beginning
    // thread uses, does not survive a fork in the middle.
    EXPECT_TRUE(open_under_run(path, {}, none));
    std::this_thread::sleep_for(200ms);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);  // ends a child that hangs
      auto monitor = open_under_run(path, {}, none);
      if (!monitor) _exit(1);
      work(**monitor);
      ::kill(getpid(), SIGKILL);
    }
    EXPECT_GE(child, 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    return child;
  }
};

TEST_F(UnderRunWindowsTest, WindowsAreRecordedByNameProcessAndThread) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  const HostTime begin = HostClock::now();
  {
    const auto monitor = connect();
    EXPECT_EQ(monitor->name(""), 0U);
    const auto epoch = monitor->name("epoch");
    EXPECT_EQ(monitor->name("epoch"), epoch);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto step = monitor->name("step " + std::to_string(t));
        for (int i = 0; i < kEach; ++i) {
          monitor->add({ns(begin) + i, ns(begin) + i + 1, step, 0});
        }
        monitor->add({ns(begin), ns(begin) + kEach, epoch, kDeviceTime});
      });
    }
    for (auto& thread : threads) thread.join();
  }
  stop();
  std::map<std::string, std::map<pid_t, int>> counts;
  for (const auto& w : recorded_) {
    EXPECT_EQ(w.pid, getpid());
    EXPECT_EQ(w.device_time, w.name == "epoch");
    ++counts[w.name][w.thread];
  }
  EXPECT_THAT(counts["epoch"], SizeIs(kThreads));
  for (int t = 0; t < kThreads; ++t) {
    const auto& of_thread = counts["step " + std::to_string(t)];
    ASSERT_THAT(of_thread, SizeIs(1));
    EXPECT_EQ(of_thread.begin()->second, kEach);
    EXPECT_NE(of_thread.begin()->first, getpid());
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

// What a program handed in just before it died is not lost.
TEST_F(UnderRunWindowsTest, WindowsOfOneThatHasJustEndedAreTakenIn) {
  const int fd = raw_client();
  const HostTime now = HostClock::now();
  const std::vector<spans::WindowRecord> windows(1000, {ns(now), ns(now), 1, 0});
  for (const std::string& packet : {encode(meters::ProgramMessage(meters::Hello{})),
                                    encode(meters::ProgramMessage(meters::Names{1, {"last"}})),
                                    meters::encode_windows(5, {}, windows)}) {
    ASSERT_GT(::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL), 0);
  }
  disconnect(fd);
  stop();
  ASSERT_THAT(recorded_, SizeIs(1000));
  EXPECT_EQ(recorded_[999], (model::Window{"last", now, now, getpid(), 5, false}));
}

// Its thread that sends windows has no time to.
TEST_F(UnderRunWindowsTest, WindowsOfOneThatDiesAreTakenFromItsMemory) {
#ifdef JOULEPROF_THREAD_SANITIZER
  GTEST_SKIP() << "it forbids threads in a forked child of a process with threads";
#endif
  const pid_t child = killed_after([](LiveMonitor& monitor) {
    const std::uint32_t name = monitor.name("short");
    const std::int64_t now = ns(HostClock::now());
    std::thread other([&] {
      for (int i = 0; i < 2; ++i) monitor.add({now, now, name, 0});
    });
    other.join();
    for (int i = 0; i < 5; ++i) monitor.add({now, now + i, name, 0});
    monitor.begin({now, monitor.name("long")});
  });
  stop();
  EXPECT_THAT(recorded_, SizeIs(7));
  for (const auto& w : recorded_) EXPECT_EQ(w.name, "short");
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0], StartsWith("window 'long' of process " + std::to_string(child) +
                                       " was open when the process ended"));
}

// More windows than its rings hold, in less time than lies between two looks of its thread.
TEST_F(UnderRunWindowsTest, ManyWindowsOfOneThatDiesAreSentInTime) {
#ifdef JOULEPROF_THREAD_SANITIZER
  GTEST_SKIP() << "it forbids threads in a forked child of a process with threads";
#endif
  constexpr int kBursts = 5;
  constexpr int kWindows = 4000;
  killed_after([](LiveMonitor& monitor) {
    const std::uint32_t name = monitor.name("short");
    const std::int64_t now = ns(HostClock::now());
    for (int burst = 0; burst < kBursts; ++burst) {
      for (int i = 0; i < kWindows; ++i) monitor.add({now, now + i, name, 0});
      std::this_thread::sleep_for(30ms);
    }
    std::this_thread::sleep_for(40ms);
  });
  stop();
  EXPECT_THAT(recorded_, SizeIs(kBursts * kWindows));
  EXPECT_THAT(warnings_, SizeIs(0));
}

TEST_F(UnderRunWindowsTest, ThoseStillOpenAreNamedWithTheReason) {
  const auto kept = connect();
  kept->begin({ns(HostClock::now()), kept->name("kept")});
  {
    const auto monitor = connect();
    const std::int64_t now = ns(HostClock::now());
    const std::uint32_t name = monitor->name("closed");
    for (std::int64_t i = 0; i < 3; ++i) monitor->begin({now + i, name});
    monitor->forget({now, name});  // its end
    monitor->begin({now, monitor->name("forgotten")});
    monitor->forget({now, monitor->name("forgotten")});
  }
  stop();
  std::sort(warnings_.begin(), warnings_.end());
  ASSERT_THAT(warnings_, SizeIs(2));
  EXPECT_THAT(warnings_[0], HasSubstr("2 windows 'closed' of process"));
  EXPECT_THAT(warnings_[0], HasSubstr("were open when its monitor was closed"));
  EXPECT_THAT(warnings_[1], HasSubstr("window 'kept'"));
  EXPECT_THAT(warnings_[1], HasSubstr("was open when the recording ended"));
}

}  // namespace
}  // namespace jouleprof::session
