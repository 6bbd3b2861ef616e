#include <gtest/gtest.h>

#include <chrono>

#include "meters/nvml/probes/counter_probe.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;

constexpr HostTime kStart{1h};

TEST(EdgeTracker, PredictsNothingBeforeTheFirstUpdate) {
  EdgeTracker edges(100ms);
  EXPECT_FALSE(edges.next_after(kStart));
  edges.saw(kStart, kStart + 61ms);  // could hold most of the phases
  EXPECT_FALSE(edges.next_after(kStart));
  edges.saw(kStart, kStart + 60ms);
  EXPECT_TRUE(edges.next_after(kStart));
}

TEST(EdgeTracker, BracketsNarrowAndRepeat) {
  EdgeTracker edges(100ms);
  edges.saw(kStart + 20ms, kStart + 50ms);
  edges.saw(kStart + 340ms, kStart + 370ms);  // together: 40 to 50
  EXPECT_EQ(edges.next_after(kStart), kStart + 45ms);
  EXPECT_EQ(edges.next_after(kStart + 45ms), kStart + 145ms);
  EXPECT_EQ(edges.next_after(kStart + 5045ms - 1ns), kStart + 5045ms);
  EXPECT_EQ(edges.next_after(kStart - 1s), kStart - 955ms);
}

TEST(EdgeTracker, AMovedPhaseReplacesTheOldOne) {
  EdgeTracker edges(100ms);
  edges.saw(kStart + 20ms, kStart + 40ms);
  edges.saw(kStart + 180ms, kStart + 200ms);
  EXPECT_EQ(edges.next_after(kStart + 200ms), kStart + 290ms);
  edges.forget();
  EXPECT_FALSE(edges.next_after(kStart));
}

TEST(EdgeTracker, UpdatesAtAnotherPeriodGiveNoPhase) {
  EdgeTracker edges(100ms);
  for (int i = 0; i < 10; ++i) edges.saw(kStart + i * 50ms, kStart + i * 50ms + 10ms);
  EXPECT_FALSE(edges.next_after(kStart));
}

// Reads of several devices delay each other: then a bracket is wide, and updates in it are missed.
TEST(EdgeTracker, MissedUpdatesAreNoOtherPeriod) {
  EdgeTracker edges(100ms);
  for (const int i : {0, 1, 4, 8, 9, 14}) {
    const HostTime update = kStart + i * 100ms;
    edges.saw(update - 370ms, update - 20ms);
    edges.saw(update - 20ms, update + 10ms);
  }
  EXPECT_EQ(edges.next_after(kStart), kStart + 95ms);

  EdgeTracker row(100ms);  // after a row the check is done
  for (const int i : {0, 1, 2, 3}) row.saw(kStart + i * 100ms, kStart + i * 100ms + 10ms);
  row.saw(kStart + 310ms, kStart + 1200ms);
  row.saw(kStart + 1200ms, kStart + 1210ms);
  EXPECT_EQ(row.next_after(kStart), kStart + 5ms);
}

}  // namespace
}  // namespace jouleprof::meters::nvml
