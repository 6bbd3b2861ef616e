#include "analysis/timeline/sensors/counter.h"

#include <gtest/gtest.h>

#include <limits>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using namespace std::chrono_literals;

struct Unwrapped {
  std::vector<CounterPoint> points;
  std::vector<Note> notes;
};

// One read a second of the given values in joules.
Unwrapped unwrap(const model::SensorTraits& traits, const std::vector<double>& joules,
                 double every = 1) {
  CounterUnwrapper unwrapper(traits);
  Unwrapped out;
  double t = 0;
  for (const double j : joules) {
    unwrapper.push({{}, at(t), at(t + 0.002), Energy::joules(j)}, out.points);
    t += every;
  }
  out.notes = unwrapper.take_notes();
  return out;
}

model::SensorTraits rapl() {
  model::SensorTraits traits;
  traits.refresh = 1ms;
  traits.wrap = Energy::joules(262143.328850);
  return traits;
}

TEST(Counter, CountsFromTheFirstReading) {
  const auto u = unwrap({}, {5000, 5100, 5100, 5250});
  ASSERT_EQ(u.points.size(), 4u);
  EXPECT_EQ(u.points[0].energy, Energy{});
  EXPECT_EQ(u.points[2].energy, Energy::joules(100));
  EXPECT_EQ(u.points[3].energy, Energy::joules(250));
  EXPECT_TRUE(u.notes.empty());
}

TEST(Counter, UnwrapsAKnownRange) {
  const auto u = unwrap(rapl(), {262000, 262100, 56.671150, 156.671150});
  ASSERT_EQ(u.points.size(), 4u);
  EXPECT_EQ(u.points[2].energy, Energy::joules(200));
  EXPECT_EQ(u.points[3].energy, Energy::joules(300));
  EXPECT_EQ(u.points[3].segment, 0u);
  EXPECT_TRUE(u.notes.empty());
}

TEST(Counter, ADecreaseWithoutAKnownRangeIsAReset) {
  const auto u = unwrap({}, {5000, 5100, 10, 110});
  ASSERT_EQ(u.points.size(), 4u);
  EXPECT_EQ(u.points[2].energy, Energy::joules(100));  // never below what was
  EXPECT_EQ(u.points[3].energy, Energy::joules(200));
  EXPECT_NE(u.points[2].segment, u.points[1].segment);
  EXPECT_EQ(u.points[3].segment, u.points[2].segment);
  ASSERT_EQ(u.notes.size(), 1u);
}

TEST(Counter, AWrapThatWouldTakeMegawattsIsAReset) {
  const auto u = unwrap(rapl(), {1000, 1100, 1200, 10, 110});
  EXPECT_NE(u.points[3].segment, u.points[2].segment);
  EXPECT_EQ(u.points.back().energy, Energy::joules(300));
}

TEST(Counter, RefusesToGuessHowOftenItWrapped) {
  // At 1 kW the range takes 262 s; after 10 minutes it went round once or twice.
  CounterUnwrapper unwrapper(rapl());
  std::vector<CounterPoint> points;
  for (const auto& [t, j] : {std::pair{0.0, 0.0}, std::pair{1.0, 1000.0}, std::pair{2.0, 2000.0},
                             std::pair{602.0, 80000.0}, std::pair{603.0, 81000.0}}) {
    unwrapper.push({{}, at(t), at(t + 0.002), Energy::joules(j)}, points);
  }
  EXPECT_NE(points[3].segment, points[2].segment);
  EXPECT_EQ(points.back().energy, Energy::joules(3000));
  EXPECT_EQ(unwrapper.take_notes().size(), 1u);
}

TEST(Counter, RefusesToGuessAfterReadsThatFailed) {
  // Of 65.5 kJ, after 10 minutes: 20 kJ at 33 W, or 85.5 kJ at 143 W. At 50 W before, both may be.
  auto traits = rapl();
  traits.wrap = Energy::joules(65536);
  CounterUnwrapper unwrapper(traits);
  std::vector<CounterPoint> points;
  for (const auto& [t, j] : {std::pair{0.0, 0.0}, std::pair{1.0, 50.0}, std::pair{601.0, 20050.0},
                             std::pair{602.0, 20100.0}}) {
    unwrapper.push({{}, at(t), at(t + 0.002), Energy::joules(j)}, points);
  }
  EXPECT_NE(points[2].segment, points[1].segment);
  EXPECT_EQ(points.back().energy, Energy::joules(100));
  EXPECT_EQ(unwrapper.take_notes().size(), 1u);
}

TEST(Counter, DropsNoValuePatterns) {
  CounterUnwrapper unwrapper({});
  std::vector<CounterPoint> points;
  const std::int64_t patterns[] = {4294967295000,
                                   4294967295000000,
                                   9223372036854775794,
                                   std::numeric_limits<std::int64_t>::max(),
                                   -1,
                                   -1000};
  double t = 0;
  unwrapper.push({{}, at(t), at(t), Energy::joules(100)}, points);
  for (const auto p : patterns) {
    unwrapper.push({{}, at(t += 1), at(t), Energy::microjoules(p)}, points);
  }
  unwrapper.push({{}, at(t += 1), at(t), Energy::joules(200)}, points);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].energy, Energy::joules(100));
  EXPECT_EQ(points[1].segment, 0u);
  EXPECT_EQ(unwrapper.take_notes().size(), std::size(patterns));
}

TEST(Counter, DropsASingleAbsurdJumpAndSplitsAtOneThatStays) {
  auto u = unwrap({}, {1000, 1100, 9e6, 1300, 1400});
  ASSERT_EQ(u.points.size(), 4u);
  EXPECT_EQ(u.points.back().energy, Energy::joules(400));
  EXPECT_EQ(u.points.back().segment, 0u);

  u = unwrap({}, {1000, 1100, 9e6, 9e6 + 100, 9e6 + 200});
  ASSERT_EQ(u.points.size(), 5u);
  EXPECT_EQ(u.points.back().energy, Energy::joules(300));
  EXPECT_EQ(u.points.back().segment, 1u);
}

// Reads every 25 ms of a counter that is updated every 100 ms.
TEST(Counter, AJumpAmongFrequentReadsIsFound) {
  model::SensorTraits traits;
  traits.refresh = 100ms;
  std::vector<double> joules;
  for (int i = 0; i < 40; ++i) joules.push_back(1000 + 10 * (i / 4) + (i < 20 ? 0 : 2000));
  const auto u = unwrap(traits, joules, 0.025);
  EXPECT_EQ(u.points.back().segment, 1u);
  EXPECT_LE(u.points.back().energy, Energy::joules(90));
  EXPECT_EQ(u.notes.size(), 1u);
}

// 5000 J more in 5 s are 1 kW, which ten times the recent power would allow.
TEST(Counter, AJumpAboveThePowerLimitIsFoundWhateverTheTime) {
  CounterUnwrapper unwrapper({});
  unwrapper.set_limit(Power::watts(400));
  std::vector<CounterPoint> points;
  for (const auto& [t, j] : {std::pair{0.0, 0.0}, std::pair{5.0, 500.0}, std::pair{10.0, 6000.0},
                             std::pair{15.0, 6500.0}}) {
    unwrapper.push({{}, at(t), at(t + 0.002), Energy::joules(j)}, points);
  }
  EXPECT_EQ(points.back().segment, 1u);
  EXPECT_EQ(points.back().energy, Energy::joules(1000));
}

TEST(Counter, OneLowReadingAddsNothing) {
  // Young: the whole counter is a plausible increment.
  const auto u = unwrap({}, {1000, 1300, 1600, 5, 2200, 2500});
  EXPECT_EQ(u.points.back().energy, Energy::joules(1500));
  EXPECT_EQ(u.points.back().segment, 0u);
  ASSERT_EQ(u.notes.size(), 1u);
  EXPECT_NE(u.notes[0].text.find("too low"), std::string::npos);
}

TEST(Counter, OneHighReadingAddsNothing) {
  const auto u = unwrap({}, {10000, 10300, 10600, 18000, 11200, 11500});
  EXPECT_EQ(u.points.back().energy, Energy::joules(1500));
  EXPECT_EQ(u.points.back().segment, 0u);
  ASSERT_EQ(u.notes.size(), 1u);
  EXPECT_NE(u.notes[0].text.find("too high"), std::string::npos);
}

TEST(Counter, ADecreaseInTheLastReadingIsNotUsed) {
  const auto u = unwrap({}, {1000, 1300, 1600, 5});
  ASSERT_EQ(u.points.size(), 3u);
  EXPECT_EQ(u.points.back().energy, Energy::joules(600));
}

TEST(Counter, WhatMayBeAResetOrALowReadingIsUnknown) {
  // 1000 to 1700 or 400 to 1700: both would be plausible.
  const auto u = unwrap({}, {0, 500, 1000, 400, 1700, 2300});
  EXPECT_EQ(u.points.back().segment, 1u);
  EXPECT_EQ(u.points.back().energy, Energy::joules(1600));
}

}  // namespace
}  // namespace jouleprof::analysis
