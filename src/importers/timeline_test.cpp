#include <gtest/gtest.h>

#include <limits>

#include "importers/builder.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;

HostTime host(Duration d) { return HostTime{d}; }

TEST(Timeline, KeepsDistancesAndBeginsAtZero) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{100}}, {seconds{101}}, {seconds{103}}});
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{3})}));
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_EQ(layout.segments[0].end, host(seconds{3}));
  EXPECT_EQ(layout.segments[0].stamp_end, seconds{103});
  EXPECT_EQ(layout.cut, Duration::zero());
}

TEST(Timeline, CutsOutPauses) {
  const auto layout = lay_out(std::vector<Stamp>{
      {seconds{0}}, {seconds{1}}, {seconds{2}}, {seconds{13}}, {seconds{14}, true}, {seconds{15}}});
  const Duration ns{1};
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{2}),
                                       host(seconds{2} + ns), host(seconds{2} + 2 * ns),
                                       host(seconds{3} + 2 * ns)}));
  EXPECT_EQ(layout.segments.size(), 3u);
  EXPECT_EQ(layout.cut, seconds{12});
}

TEST(Timeline, ASeamIsLeftOfAPause) {
  const auto layout =
      lay_out(std::vector<Stamp>{{seconds{0}}, {seconds{1}}, {seconds{99}, true}}, seconds{1});
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{2})}));
}

TEST(Timeline, ARareStampIsNoPause) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{0}}, {seconds{60}}, {seconds{360}}});
  EXPECT_EQ(layout.segments.size(), 1u);
}

TEST(Timeline, AClockThatGoesBackBeginsASegment) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{10}}, {seconds{11}}, {seconds{5}}});
  EXPECT_EQ(layout.backward_steps, 1u);
  EXPECT_EQ(layout.segments.size(), 2u);
  EXPECT_LT(layout.times[1], layout.times[2]);
}

TEST(Timeline, EqualStampsStayApart) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{1}}, {seconds{1}}});
  EXPECT_EQ(layout.times[1], host(Duration{1}));
}

TEST(Timeline, HugeStepsDoNotOverflow) {
  std::vector<Stamp> stamps;
  for (int i = 0; i < 100; ++i) stamps.push_back({i % 2 ? seconds{7'000'000'000} : seconds{0}});
  const auto layout = lay_out(stamps);
  for (std::size_t i = 1; i < layout.times.size(); ++i) {
    EXPECT_LT(layout.times[i - 1], layout.times[i]);
  }
}

TEST(Timeline, UsualDistanceIsTheMedian) {
  EXPECT_EQ(
      usual_distance(std::vector<Stamp>{{seconds{0}}, {seconds{1}}, {seconds{2}}, {seconds{50}}}),
      seconds{1});
  EXPECT_EQ(usual_distance(std::vector<Stamp>{{seconds{3}}}), Duration::zero());
}

}  // namespace
}  // namespace jouleprof::importers
