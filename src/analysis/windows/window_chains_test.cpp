#include "analysis/windows/window_chains.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

HostTime at(Duration t) { return HostTime{1000s + t}; }

class WindowChainsTest : public ::testing::Test {
 protected:
  void add(Duration begin, Duration end) {
    chains.add(at(begin), at(end), [this](const auto& chain) { ended.push_back(chain); });
  }
  const std::vector<WindowChain>& all() {
    chains.end_all([this](const auto& chain) { ended.push_back(chain); });
    return ended;
  }

  WindowChains chains;
  std::vector<WindowChain> ended;
};

TEST_F(WindowChainsTest, WindowsThatTouchAreOne) {
  for (int i = 0; i < 10; ++i) add(i * 1s, (i + 1) * 1s);
  EXPECT_TRUE(ended.empty());
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(ended[0].begin, at(0s));
  EXPECT_EQ(ended[0].end, at(10s));
  EXPECT_EQ(ended[0].count, 10u);
  EXPECT_EQ(ended[0].share(), 1);
}

TEST_F(WindowChainsTest, APauseOfAThousandthOfTheNextWindowKeepsTheChain) {
  add(0ms, 100ms);
  add(100ms + 100us, 200ms + 100us);
  add(200ms + 201us, 300ms + 201us);
  ASSERT_EQ(all().size(), 2u);
  EXPECT_EQ(ended[0].count, 2u);
  EXPECT_EQ(ended[0].covered, 200ms);
  EXPECT_NEAR(ended[0].share(), 200 / 200.1, 1e-9);
  EXPECT_EQ(ended[1].layer, 0u);  // it overlaps nothing
}

TEST_F(WindowChainsTest, OverlappingChainsAreOfDifferentLayers) {
  // Two threads, half a window apart, as their windows end.
  for (int i = 0; i < 5; ++i) {
    add(i * 1s, (i + 1) * 1s);
    add(i * 1s + 500ms, (i + 1) * 1s + 500ms);
  }
  ASSERT_EQ(all().size(), 2u);
  EXPECT_EQ(ended[0].count, 5u);
  EXPECT_EQ(ended[1].count, 5u);
  EXPECT_NE(ended[0].layer, ended[1].layer);
}

TEST_F(WindowChainsTest, ALayerKeepsTheEndOfItsLastChain) {
  add(0s, 5s);
  chains.end_if([](const auto&) { return true; }, [this](const auto& c) { ended.push_back(c); });
  add(4s, 6s);
  add(5s, 7s);
  ASSERT_EQ(all().size(), 3u);
  EXPECT_EQ(ended[0].layer, 0u);
  EXPECT_EQ(ended[1].layer, 1u);
  EXPECT_EQ(ended[2].layer, 0u);  // from 5 s on: new, though it touches
  EXPECT_EQ(ended[2].begin, at(5s));
}

TEST_F(WindowChainsTest, MemoryIsBoundedInAnyOrder) {
  for (int i = 10'000; i > 0; --i) add(i * 1ms, i * 1ms + 500us);
  std::size_t most = 0;
  for (const auto& chain : all()) most = std::max(most, chain.layer);
  EXPECT_EQ(most, 255u);
  EXPECT_EQ(ended.size(), 10'000u);
}

}  // namespace
}  // namespace jouleprof::analysis
