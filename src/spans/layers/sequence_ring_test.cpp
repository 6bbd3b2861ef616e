#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "spans/layers/thread_layers.h"

namespace jouleprof::layers {
namespace {

TEST(SequenceRing, FindsTheMakerOfANode) {
  const auto ring = std::make_unique<SequenceRing>();
  EXPECT_FALSE(ring->find(0));
  ring->push(10, 12, 3);
  ring->push(12, 20, model::kNone);
  ring->push(25, 26, 4);
  EXPECT_FALSE(ring->find(9));
  EXPECT_EQ(ring->find(10), 3u);
  EXPECT_EQ(ring->find(11), 3u);
  EXPECT_EQ(ring->find(12), model::kNone);
  EXPECT_EQ(ring->find(19), model::kNone);
  EXPECT_FALSE(ring->find(22));  // never pushed
  EXPECT_EQ(ring->find(25), 4u);
  EXPECT_FALSE(ring->find(26));  // not made yet
}

TEST(SequenceRing, ForgetsTheOldest) {
  const auto ring = std::make_unique<SequenceRing>();
  const std::uint64_t count = 3 * SequenceRing::kCapacity + 5;
  for (std::uint64_t i = 0; i < count; ++i) ring->push(i, i + 1, static_cast<std::uint32_t>(i));
  EXPECT_FALSE(ring->find(count - SequenceRing::kCapacity - 1));
  for (std::uint64_t i = count - SequenceRing::kCapacity; i < count; ++i) {
    ASSERT_EQ(ring->find(i), i);
  }
  ring->clear();
  EXPECT_FALSE(ring->find(count - 1));
}

TEST(SequenceRing, NeverReturnsAWrongLayerWhileItIsWritten) {
  const auto ring = std::make_unique<SequenceRing>();
  std::atomic<std::uint64_t> made{0};
  std::atomic<bool> enough{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !enough || i < 3 * SequenceRing::kCapacity; ++i) {
      ring->push(i, i + 1, static_cast<std::uint32_t>(i));
      made.store(i + 1, std::memory_order_release);
    }
  });
  std::uint64_t found = 0;
  for (int look = 0; look < 100'000 || (found == 0 && look < 10'000'000); ++look) {
    const std::uint64_t newest = made.load(std::memory_order_acquire);
    // Also about where the writer overwrites.
    for (std::uint64_t back : {1ul, 100ul, SequenceRing::kCapacity - 1, SequenceRing::kCapacity}) {
      if (newest < back) continue;
      const auto layer = ring->find(newest - back);
      if (!layer) continue;
      ++found;
      ASSERT_EQ(*layer, static_cast<std::uint32_t>(newest - back));
    }
  }
  enough = true;
  writer.join();
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace jouleprof::layers
