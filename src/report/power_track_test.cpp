#include <gtest/gtest.h>

#include <chrono>

#include "report/figures.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

// A GPU of 100 W for three seconds.
model::Recording recording() {
  model::Recording r;
  model::Domain gpu;
  gpu.kind = model::DomainKind::kGpu;
  gpu.device = "gpu0";
  r.domains = {gpu};
  model::Sensor ring;
  ring.kind = model::SensorKind::kPowerRing;
  ring.name = "ring";
  ring.traits.refresh = 20ms;
  ring.traits.window = 20ms;
  r.sensors = {ring};
  for (int i = 0; i != 150; ++i) {
    r.readings.powers.push_back({ring.id, HostTime{100s + i * 20ms}, Power::watts(100)});
  }
  r.run.source = "monitor";
  r.run.complete = true;
  return r;
}

TEST(PowerTrack, HasAStepForEachTimeOfTheRecording) {
  const analysis::Run run(recording());
  const auto tracks = power_tracks(run, {}, HostTime{100s}, 3000);
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_GT(tracks[0].steps.size(), 140u);
  EXPECT_LT(tracks[0].steps.size(), 152u);
  EXPECT_FALSE(tracks[0].left_out.has_value());
}

// By a driver, or in a damaged file.
TEST(PowerTrack, AReadingStampedDaysAheadTakesNoPlaceForTheTimeBetween) {
  auto r = recording();
  for (int i = 0; i != 5; ++i) {
    r.readings.powers.push_back(
        {r.sensors[0].id, HostTime{100s + 36h + i * 20ms}, Power::watts(100)});
  }
  const analysis::Run run(std::move(r));
  const auto tracks = power_tracks(run, {}, HostTime{100s}, 3000);
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_LE(tracks[0].steps.size(), 12'001u);
  EXPECT_GT(tracks[0].steps.size(), 100u);
  EXPECT_LE(tracks[0].extremes.size(), 12'001u);
  // And a reader is informed of it.
  ASSERT_TRUE(tracks[0].left_out.has_value());
  EXPECT_GT(*tracks[0].left_out, HostTime{100s + 35h});
}

}  // namespace
}  // namespace jouleprof::report
