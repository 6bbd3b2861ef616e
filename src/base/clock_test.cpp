#include "base/clock.h"

#include <gtest/gtest.h>

namespace jouleprof {
namespace {

using std::chrono::seconds;

HostTime host(int s) { return HostTime{seconds{s}}; }
RealTime real(int s) { return RealTime{seconds{s}}; }

TEST(ClockMap, ConvertsBothWaysWithOneOffset) {
  const ClockMap map({{host(10), real(1010)}});
  EXPECT_EQ(map.to_host(real(1012)), host(12));
  EXPECT_EQ(map.to_real(host(7)), real(1007));
}

TEST(ClockMap, AStepMovesOnlyItsOwnSide) {
  // The wall clock jumped an hour ahead between host seconds 10 and 20.
  const ClockMap map({{host(20), real(4620)}, {host(10), real(1010)}});
  EXPECT_EQ(map.to_real(host(11)), real(1011));
  EXPECT_EQ(map.to_real(host(19)), real(4619));
  EXPECT_EQ(map.to_host(real(1009)), host(9));
  EXPECT_EQ(map.to_host(real(4621)), host(21));
}

TEST(ClockPoint, ReadsTheClocksTogether) {
  const HostTime before = HostClock::now();
  const ClockPoint p = ClockPoint::now();
  const HostTime after = HostClock::now();
  EXPECT_GE(p.host, before);
  EXPECT_LE(p.host, after);
  EXPECT_GE(p.suspended, seconds{-1});
}

}  // namespace
}  // namespace jouleprof
