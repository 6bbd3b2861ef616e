#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "spans/windows/shared_rings.h"

namespace jouleprof::spans {
namespace {

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
