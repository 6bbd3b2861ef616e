// A meter at the supply whose readings cannot be this machine's has no energy, but a reason.
#include "analysis/recording_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using ::testing::Contains;
using ::testing::HasSubstr;

inline constexpr model::DomainId kWall{2};
inline constexpr model::SensorId kPlug{5};

// A minute of work in steps of 10 s, with a meter that shows `wall` of the GPU's power at a time;
// NAN: it does not answer.
model::Profile metered(const std::function<double(const Truth&, double)>& wall) {
  Recorded run;
  run.power.hold(120, 3);
  for (int i = 0; i < 3; ++i) run.power.hold(500, 10), run.power.hold(150, 10);
  run.power.hold(120, 4);
  run.recording.run.work_end = at(63);
  run.recording.idle_spans = {{at(0.5), at(2.9)}};
  run.recording.readings.powers = run.gpu.samples(run.power, 0, 66);
  run.recording.readings.counters = run.gpu.reads(run.power, 0.1, 66);
  run.recording.domains.push_back(
      {kWall, model::DomainKind::kPlatform, "wall", "Wall meter", "", {}, true, ""});
  model::Sensor plug{kPlug, kWall, model::SensorKind::kPowerAverage, "wall:plug", {}, {}};
  plug.traits.scale = model::ScaleError::symmetric(0.01);
  run.recording.sensors.push_back(plug);
  for (double t = 0; t < 66; t += 1) {
    const double watts = wall(run.power, t);
    if (std::isnan(watts)) continue;
    run.recording.readings.powers.push_back({kPlug, at(t), Power::watts(watts)});
  }
  const auto profile = profile_of(run.recording);
  EXPECT_TRUE(profile);
  return profile.value_or(model::Profile{});
}

double drawn(const Truth& gpu, double t) { return (gpu.joules(t, t + 0.01) / 0.01 + 100) / 0.92; }

TEST(WallCheck, HasTheEnergyOfAMeterThatFollows) {
  const auto profile = metered(drawn);
  const auto& wall = domain(profile, kWall);
  ASSERT_TRUE(wall.energy) << wall.reason;
  const Energy real = Energy::joules((3 * 10 * (500 + 150) + 60 * 100) / 0.92);
  EXPECT_LE(wall.energy->low(), real);
  EXPECT_GE(wall.energy->high(), real);
}

TEST(WallCheck, HasNoneOfLessThanTheSensorsShow) {
  const auto profile = metered([](const Truth& gpu, double t) { return drawn(gpu, t) / 10; });
  const auto& wall = domain(profile, kWall);
  EXPECT_FALSE(wall.energy);
  EXPECT_THAT(wall.reason, HasSubstr("where the sensors of the machine's parts show"));
  EXPECT_THAT(profile.warnings, Contains(HasSubstr("wall: the meter shows ")));
  EXPECT_TRUE(domain(profile, kGpu0).energy);
}

TEST(WallCheck, HasNoneOfAMeterThatDoesNotFollow) {
  for (const double rate : {0.0, 1.7}) {
    const auto profile =
        metered([rate](const Truth&, double t) { return 600 + 40 * std::sin(rate * t); });
    const auto& wall = domain(profile, kWall);
    EXPECT_FALSE(wall.energy);
    EXPECT_THAT(wall.reason, HasSubstr("does not follow this machine"));
  }
}

// Of a meter that shows the mean of the last 8 s, and does not say so.
TEST(WallCheck, HoldsTheTruthOfALateMeter) {
  const auto profile = metered([](const Truth& gpu, double t) {
    const double from = std::max(t - 8, 0.0);
    return (gpu.joules(from, t + 0.01) / (t + 0.01 - from) + 100) / 0.92;
  });
  const auto& wall = domain(profile, kWall);
  ASSERT_TRUE(wall.energy) << wall.reason;
  const Energy real = Energy::joules((3 * 10 * (500 + 150) + 60 * 100) / 0.92);
  EXPECT_LE(wall.energy->low(), real);
  EXPECT_GE(wall.energy->high(), real);
  EXPECT_THAT(profile.warnings,
              Contains(HasSubstr("wall: the meter showed less than the sensors")));
}

// The highest power may lie where it was away.
TEST(WallCheck, HasNoneOfAMeterThatWasAway) {
  for (const double away : {10.0, 2.0}) {
    const auto profile = metered([away](const Truth& gpu, double t) {
      return t > 13 - away && t < 13 ? NAN : drawn(gpu, t);
    });
    const auto& wall = domain(profile, kWall);
    EXPECT_EQ(wall.energy.has_value(), away == 2.0) << wall.reason;
    EXPECT_THAT(wall.reason, HasSubstr(away > 2 ? "the meter was not read for " : ""));
  }
}

}  // namespace
}  // namespace jouleprof::analysis
