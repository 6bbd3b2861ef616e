#include "spans/windows/window_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

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

struct EndsLate {
  WindowInbox* inbox = nullptr;

  ~EndsLate() {
    inbox->drain();  // takes away the ring of a thread that has left
    inbox->push({3, 4, 0, 0});
  }
};
thread_local EndsLate ends_late;

TEST(WindowInboxTest, TakesTheWindowOfAnObjectThatIsDestroyedAfterItsThreadsRings) {
  std::vector<std::int64_t> begins;
  WindowInbox inbox([&](const auto&, const WindowRecord& r) { begins.push_back(r.begin); });
  std::thread([&] {
    ends_late.inbox = &inbox;
    inbox.push({1, 2, 0, 0});
  }).join();
  inbox.drain();
  EXPECT_THAT(begins, ElementsAre(1, 3));
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

struct Left {
  std::vector<std::int64_t> begins;
  std::vector<pid_t> threads;
  std::uint64_t overwritten = 0;
};

Left left_of(int fd, std::uint64_t received) {
  Left out;
  out.overwritten = read_left(
      fd, [&](std::uint32_t) { return received; },
      [&](pid_t thread, const WindowRecord& w) {
        out.begins.push_back(w.begin);
        out.threads.push_back(thread);
      });
  return out;
}

TEST(SharedRings, WhatWasNotReceivedIsLeft) {
  SharedRings rings;
  auto first = rings.make(11);
  auto second = rings.make(22);
  ASSERT_TRUE(first.slot && second.slot);
  EXPECT_EQ(second.number, 1u);
  for (std::int64_t i = 0; i < 5; ++i) first.slot->ring.push({i, i, 0, 0});
  second.slot->ring.push({100, 101, 0, 0});
  first.slot.reset();  // its thread has ended
  const Left all = left_of(rings.fd(), 0);
  EXPECT_EQ(all.begins, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 100}));
  EXPECT_EQ(all.threads, (std::vector<pid_t>{11, 11, 11, 11, 11, 22}));
  EXPECT_EQ(left_of(rings.fd(), 4).begins, (std::vector<std::int64_t>{4}));
  EXPECT_TRUE(left_of(rings.fd(), 5).begins.empty());
}

TEST(SharedRings, OverwrittenWindowsAreCounted) {
  constexpr auto kCapacity = static_cast<std::int64_t>(WindowRing::kCapacity);
  SharedRings rings;
  auto made = rings.make(1);
  ASSERT_TRUE(made.slot);
  for (std::int64_t i = 0; i < kCapacity + 10; ++i) {
    if (i == kCapacity) made.slot->ring.drain([](const WindowRecord&) {});
    ASSERT_TRUE(made.slot->ring.push({i, i, 0, 0}));
  }
  const Left left = left_of(rings.fd(), 3);
  EXPECT_EQ(left.overwritten, 7u);
  ASSERT_EQ(left.begins.size(), WindowRing::kCapacity);
  EXPECT_EQ(left.begins.front(), 10);
  EXPECT_EQ(left.begins.back(), kCapacity + 9);
}

TEST(SharedRings, AFileOfTheProgramUnderTheirNumberIsNotCut) {
  SharedRings rings;
  const int number = rings.fd();
  ASSERT_EQ(::close(number), 0);
  ASSERT_EQ(::memfd_create("the program's", MFD_CLOEXEC), number);
  EXPECT_EQ(rings.make(1).slot, nullptr);
  EXPECT_EQ(rings.fd(), -1);
  EXPECT_EQ(::lseek(number, 0, SEEK_END), 0);
  ::close(number);
}

TEST(SharedRings, ACutFileHasNoWindows) {
  SharedRings rings;
  auto made = rings.make(1);
  ASSERT_TRUE(made.slot);
  made.slot->ring.push({1, 2, 0, 0});
  ASSERT_EQ(ftruncate(rings.fd(), 100), 0);
  EXPECT_TRUE(left_of(rings.fd(), 0).begins.empty());
  EXPECT_TRUE(left_of(-1, 0).begins.empty());
}

using All = std::vector<OpenWindow>;

TEST(OpenWindows, ThoseThatHaveNotEndedByTheirBegin) {
  const auto open = std::make_unique<OpenWindows>();
  open->add({30, 1});
  open->add({10, 2});
  open->add({20, 1});
  EXPECT_EQ(open->all(), (All{{10, 2}, {20, 1}, {30, 1}}));
  open->remove({20, 1});
  open->remove({20, 1});  // once
  open->remove({10, 1});  // another name
  EXPECT_EQ(open->all(), (All{{10, 2}, {30, 1}}));
  EXPECT_FALSE(open->closed());
  open->close();
  EXPECT_TRUE(open->closed());
  EXPECT_EQ(open->all().size(), 2u);
}

TEST(OpenWindows, EqualOnesAreCounted) {
  const auto open = std::make_unique<OpenWindows>();
  open->add({10, 2});
  open->add({10, 2});
  open->remove({10, 2});
  EXPECT_EQ(open->all(), (All{{10, 2}}));
}

TEST(OpenWindows, AnotherThreadEndsThem) {
  const auto open = std::make_unique<OpenWindows>();
  for (std::int64_t i = 1; i <= 100; ++i) open->add({i, 0});
  std::thread([&] {
    open->add({1000, 5});
    for (std::int64_t i = 1; i <= 99; ++i) open->remove({i, 0});
  }).join();
  EXPECT_EQ(open->all(), (All{{100, 0}, {1000, 5}}));
}

TEST(OpenWindows, WhereThereIsNoRoomTheyAreLeftOut) {
  const auto open = std::make_unique<OpenWindows>();
  for (std::int64_t i = 1; i <= 3000; ++i) open->add({i, 0});
  const auto all = open->all();
  ASSERT_FALSE(all.empty());
  EXPECT_LE(all.size(), OpenWindows::kMost);
  EXPECT_EQ(all.front(), (OpenWindow{1, 0}));
  for (std::int64_t i = 1; i <= 3000; ++i) open->remove({i, 0});
  EXPECT_TRUE(open->all().empty());
}

TEST(OpenWindows, ThreadsAtOnce) {
  const auto open = std::make_unique<OpenWindows>();
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 1; i <= 20'000; ++i) {
        open->add({i, t});
        open->add({i + 1, 100 + t});
        open->remove({i + 1, 100 + t});
        if (i < 20'000) open->remove({i, t});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(open->all().size(), 4u);
}

}  // namespace

}  // namespace jouleprof::spans
