#include "spans/windows/window_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

namespace jouleprof::spans {
namespace {

using testing::ElementsAre;

TEST(WindowRingTest, KeepsOrderAndRefusesWhenFull) {
  WindowRing ring;
  for (std::size_t i = 0; i < WindowRing::kCapacity; ++i) {
    ASSERT_TRUE(ring.push({static_cast<std::int64_t>(i), 0, 0, 0}));
  }
  EXPECT_FALSE(ring.push({}));
  std::int64_t next = 0;
  ring.drain([&](const WindowRecord& r) { EXPECT_EQ(r.begin, next++); });
  EXPECT_EQ(next, static_cast<std::int64_t>(WindowRing::kCapacity));
  EXPECT_TRUE(ring.push({}));
}

TEST(WindowInboxTest, GivesWindowsWithTheirThread) {
  std::vector<std::int64_t> begins;
  std::set<pid_t> threads;
  WindowInbox inbox([&](const WindowInbox::Origin& origin, const WindowRecord& r) {
    begins.push_back(r.begin);
    threads.insert(origin.thread);
  });
  inbox.push({1, 2, 0, 0});
  std::thread([&] { inbox.push({3, 4, 0, 0}); }).join();
  inbox.drain();
  EXPECT_THAT(begins, ElementsAre(1, 3));
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_TRUE(threads.contains(gettid()));
  inbox.drain();
  EXPECT_EQ(begins.size(), 2u);
}

TEST(WindowInboxTest, LosesNoneWithoutADrain) {
  std::int64_t sum = 0;
  WindowInbox inbox([&](const auto&, const WindowRecord& r) { sum += r.begin; });
  const std::int64_t n = 3 * static_cast<std::int64_t>(WindowRing::kCapacity) + 17;
  for (std::int64_t i = 1; i <= n; ++i) inbox.push({i, i, 0, 0});
  inbox.drain();
  EXPECT_EQ(sum, n * (n + 1) / 2);
}

TEST(WindowInboxTest, ManyThreadsWhileItIsDrained) {
  constexpr int kThreads = 16;
  constexpr std::int64_t kEach = 20'000;
  std::int64_t count = 0;
  WindowInbox inbox([&](const auto&, const WindowRecord&) { ++count; });
  std::atomic<bool> done = false;
  std::thread drains([&] {
    while (!done) inbox.drain();
  });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (std::int64_t k = 0; k < kEach; ++k) inbox.push({k, k, 0, 0});
      });
    }
  }
  done = true;
  drains.join();
  inbox.drain();
  EXPECT_EQ(count, kThreads * kEach);
}

TEST(WindowInboxTest, AThreadMayOutliveAnInboxAndUseTheNext) {
  int first = 0;
  int second = 0;
  {
    WindowInbox inbox([&](const auto&, const WindowRecord&) { ++first; });
    inbox.push({});
    inbox.drain();
  }
  WindowInbox inbox([&](const auto&, const WindowRecord&) { ++second; });
  inbox.push({});
  inbox.drain();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(WindowInboxTest, AForkedChildTakesNothingAndDoesNotHang) {
  int count = 0;
  WindowInbox inbox([&](const auto&, const WindowRecord&) { ++count; });
  inbox.push({});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    for (std::size_t i = 0; i < 2 * WindowRing::kCapacity; ++i) inbox.push({});
    inbox.drain();
    std::thread([&] { inbox.push({}); }).join();
    _exit(count);  // nothing was consumed
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  inbox.drain();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace jouleprof::spans
