#include "spans/windows/shared_rings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace jouleprof::spans {
namespace {

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

TEST(SharedRings, ACutFileHasNoWindows) {
  SharedRings rings;
  auto made = rings.make(1);
  ASSERT_TRUE(made.slot);
  made.slot->ring.push({1, 2, 0, 0});
  ASSERT_EQ(ftruncate(rings.fd(), 100), 0);
  EXPECT_TRUE(left_of(rings.fd(), 0).begins.empty());
  EXPECT_TRUE(left_of(-1, 0).begins.empty());
}

}  // namespace
}  // namespace jouleprof::spans
