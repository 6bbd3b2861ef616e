#include <gtest/gtest.h>

#include <chrono>

#include "analysis/kernels/kernel_evidence.h"
#include "model/device/gauge_names.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kPowerLimit = 4;  // the bit of the power limit, as a gauge's value

HostTime at(int second) { return HostTime{std::chrono::seconds{second}}; }

// A reading each second from 0 to 10; the power limit reduces the clocks from 4 to 8.
model::Recording recording() {
  model::Recording r;
  r.domains.push_back({});
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kGauge;
  sensor.name = model::gauge::kClockEventReasons;
  r.sensors.push_back(sensor);
  for (int s = 0; s <= 10; ++s) {
    r.readings.gauges.push_back({sensor.id, at(s), s >= 4 && s < 8 ? kPowerLimit : 0});
  }
  return r;
}

ReplayTime replays(int begin, int end) {
  model::Trace trace;
  trace.chunks.emplace_back();
  trace.chunks.back().kind = model::ChunkKind::kReplay;
  trace.chunks.back().begin = at(begin);
  trace.chunks.back().end = at(end);
  ReplayTime time;
  time.add(trace);
  return time;
}

TEST(ClockLimits, IsTheShareOfTime) {
  ASSERT_TRUE(model::ClockReasons::of_gauge(kPowerLimit).limited_by_power());
  const auto r = recording();
  const ClockLimits limits(r, r.domains[0]);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), {}).value(), 0.4);
  EXPECT_DOUBLE_EQ(limits.held_share(at(4), at(8), {}).value(), 1.0);
}

// Kernels without pauses reach the power limit that the program does not.
TEST(ClockLimits, RerunsAreNotTheProgram) {
  const auto r = recording();
  const ClockLimits limits(r, r.domains[0]);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), replays(4, 8)).value(), 0.0);
  EXPECT_DOUBLE_EQ(limits.held_share(at(0), at(10), replays(6, 10)).value(), 2.0 / 6);
  EXPECT_FALSE(limits.held_share(at(0), at(10), replays(0, 11)));
}

TEST(ClockLimits, NothingIsKnownWithoutReadings) {
  model::Recording empty;
  empty.domains.push_back({});
  EXPECT_FALSE(ClockLimits(empty, empty.domains[0]).held_share(at(0), at(10), {}));
}

}  // namespace
}  // namespace jouleprof::analysis
