#include "session/run/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace jouleprof::session {
namespace {

HostTime soon() { return HostClock::now() + std::chrono::seconds{20}; }

TEST(SignalStream, ReportsEachSignal) {
  auto stream = SignalStream::create();
  ASSERT_TRUE(stream);
  kill(getpid(), SIGTERM);
  kill(getpid(), SIGUSR1);
  (*stream)->wait(soon());
  std::vector<int> came;
  while (const auto signal = (*stream)->next()) {
    EXPECT_TRUE(signal->sent);
    came.push_back(signal->number);
  }
  EXPECT_EQ(came, (std::vector{SIGTERM, SIGUSR1}));
}

TEST(SignalStream, WakeAndOtherDescriptorsEndAWait) {
  auto stream = SignalStream::create();
  ASSERT_TRUE(stream);
  (*stream)->wake();
  const HostTime deadline = soon();
  (*stream)->wait(deadline);
  EXPECT_FALSE((*stream)->next());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  (*stream)->wait(deadline, ends[0]);
  EXPECT_LT(HostClock::now(), deadline);
  close(ends[0]);
  close(ends[1]);
}

TEST(SignalStream, PutsEverythingBack) {
  struct sigaction before {};
  struct sigaction after {};
  signal(SIGUSR2, SIG_IGN);
  sigaction(SIGTERM, nullptr, &before);
  {
    auto stream = SignalStream::create();
    ASSERT_TRUE(stream);
    EXPECT_FALSE(SignalStream::create());  // only one at a time
    kill(getpid(), SIGUSR2);
    EXPECT_FALSE((*stream)->next());  // ignored from the beginning
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  sigaction(SIGUSR2, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace jouleprof::session
