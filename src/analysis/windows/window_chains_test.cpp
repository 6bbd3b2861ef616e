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
  EXPECT_TRUE(ended[0].pauses.empty());
}

TEST_F(WindowChainsTest, APauseThatIsShortKeepsTheChain) {
  add(0ms, 100ms);
  add(110ms, 200ms);
  add(200ms, 300ms);
  add(400ms, 500ms);
  ASSERT_EQ(all().size(), 2u);
  EXPECT_EQ(ended[0].count, 3u);
  ASSERT_EQ(ended[0].pauses.size(), 1u);
  EXPECT_EQ(ended[0].pauses[0].first, at(0ms));
  EXPECT_EQ(ended[0].pauses[0].begin, at(100ms));
  EXPECT_EQ(ended[0].pauses[0].end, at(110ms));
  EXPECT_EQ(ended[0].pauses[0].last, at(200ms));
  EXPECT_EQ(ended[0].pauses[0].open, 10ms);
  EXPECT_EQ(ended[1].layer, 0u);  // it overlaps nothing
}

TEST_F(WindowChainsTest, PausesOfManyTinyWindowsAreFew) {
  for (int i = 0; i < 10'000; ++i) add(i * 10us, i * 10us + 8us);
  ASSERT_EQ(all().size(), 1u);
  EXPECT_LE(ended[0].pauses.size(), 21u);
  Duration open{};
  for (const auto& pause : ended[0].pauses) open += pause.open;
  EXPECT_EQ(open, 9'999 * 2us);
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
