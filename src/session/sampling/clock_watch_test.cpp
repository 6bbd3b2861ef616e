#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/sampling/recorded_sampling.h"

namespace jouleprof::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

ClockPoint point(int host_ms, int real_ms, int suspended_ms = 0) {
  return {HostTime{milliseconds{host_ms}}, RealTime{milliseconds{real_ms}},
          milliseconds{suspended_ms}};
}

TEST(ClockWatch, RecordsAPointEveryPeriod) {
  ClockWatch watch(seconds{10});
  EXPECT_EQ(watch.observe(point(0, 1000)).points.size(), 1u);
  EXPECT_EQ(watch.observe(point(500, 1500)).points.size(), 0u);
  EXPECT_EQ(watch.observe(point(10000, 11040)).points.size(), 1u);  // slewed by 40 ms: no step
}

TEST(ClockWatch, AStepIsBracketed) {
  ClockWatch watch;
  watch.observe(point(0, 1000));
  watch.observe(point(500, 1500));
  const auto seen = watch.observe(point(1000, 3602000));
  ASSERT_EQ(seen.points.size(), 2u);
  EXPECT_EQ(seen.points[0].host, HostTime{milliseconds{500}});
  EXPECT_EQ(seen.points[1].host, HostTime{milliseconds{1000}});
  ASSERT_TRUE(seen.warning);
  EXPECT_THAT(*seen.warning, HasSubstr("forward by 3600.000 s"));
  EXPECT_THAT(*watch.observe(point(1500, 500)).warning, HasSubstr("back by"));
  EXPECT_FALSE(watch.observe(point(2000, 1000)).warning);
}

TEST(ClockWatch, ASleepIsNoStep) {
  ClockWatch watch;
  watch.observe(point(0, 1000));
  const auto seen = watch.observe(point(500, 61500, 60000));
  ASSERT_TRUE(seen.warning);
  EXPECT_THAT(*seen.warning, HasSubstr("suspended for 60.0 s"));
  EXPECT_EQ(seen.points.size(), 1u);  // the first one was recorded already
}

}  // namespace
}  // namespace jouleprof::session
