#include "analysis/live/energy_ledger.h"

#include <gtest/gtest.h>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using namespace std::chrono_literals;

// A counter that a program reads for some minutes, with a history of 20 s and 40 points before it.
TEST(EnergyLedger, WhatIsLongAgoIsBoundedAndStaysWithinItsInterval) {
  constexpr std::size_t kMost = 40;
  simulated::Truth truth;
  for (int i = 0; i != 80; ++i) truth.hold(i % 2 == 0 ? 100 : 300, 3.3);
  simulated::GpuSensors gpu;
  EnergyLedger ledger({gpu.counter(), gpu.ring()}, 20s, kMost);
  const auto samples = gpu.samples(truth, 0, truth.end());
  const auto reads = gpu.reads(truth, 0.05, truth.end());
  std::size_t sample = 0;
  std::size_t read = 0;
  for (double t = 5; t < truth.end(); t += 5) {
    model::Readings readings;
    for (; sample < samples.size() && samples[sample].at <= at(t); ++sample) {
      readings.powers.push_back(samples[sample]);
    }
    for (; read < reads.size() && reads[read].after <= at(t); ++read) {
      readings.counters.push_back(reads[read]);
    }
    ledger.append(readings);
    ledger.tidy(at(t));
    ASSERT_LE(ledger.coarse_points(), kMost);
  }
  EXPECT_GT(ledger.coarse_points(), kMost / 3);
  const double end = truth.end() - 6;
  for (const double begin : {1.5, 40.2, 111.1, 180.7, 230.0}) {
    const auto energy = ledger.energy(at(begin), at(end));
    ASSERT_TRUE(energy) << begin << ": " << energy.error().message;
    EXPECT_NEAR(energy->energy.joules(), truth.joules(begin, end), energy->error.joules()) << begin;
  }
}

// As that of a platform in a virtual machine, which shows 0 for ever: each scrape waited for it.
TEST(EnergyLedger, ACounterThatStandsStillIsNotWaitedFor) {
  model::Sensor sensor{simulated::kCounter, {}, model::SensorKind::kEnergyCounter, "psys", {}, {}};
  sensor.traits.refresh = 1ms;
  EnergyLedger ledger({sensor, {}}, 10min);
  const auto append = [&](double t) {
    model::Readings readings;
    readings.counters.push_back({sensor.id, at(t), at(t), Energy{}});
    ledger.append(readings);
  };
  for (int i = 0; i <= 5; ++i) append(i);
  EXPECT_TRUE(ledger.knows(at(4.95)));
  EXPECT_FALSE(ledger.knows(at(5.5)));  // it may move again
  EXPECT_FALSE(ledger.energy(at(1), at(4)));
}

// RAPL of 50 W, which stands still from 3 s on.
TEST(EnergyLedger, EnergyIsNotKnownWhileACounterMayCatchUp) {
  model::Sensor sensor{simulated::kCounter, {}, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
  sensor.traits.refresh = 1ms;
  for (const bool catches_up : {true, false}) {
    EnergyLedger ledger({sensor, {}}, 10min);
    const auto append = [&](double from, double to, double still_at) {
      for (int i = static_cast<int>(100 * from); i < static_cast<int>(100 * to); ++i) {
        const double t = 0.01 * i;
        model::Readings readings;
        readings.counters.push_back(
            {sensor.id, at(t), at(t + 1e-5), Energy::joules(7 + 50 * std::min(t, still_at))});
        ledger.append(readings);
      }
    };
    append(0, 4.5, 3);
    EXPECT_TRUE(ledger.knows(at(2.9)));
    EXPECT_FALSE(ledger.knows(at(4))) << "0 J, it seemed";
    EXPECT_NEAR(seconds(ledger.known()->end - at(0)), 3, 0.02);
    append(4.5, 6, catches_up ? 100 : 3);
    EXPECT_TRUE(ledger.knows(at(4)));
    const auto energy = ledger.energy(at(3.2), at(4));
    ASSERT_EQ(energy.has_value(), catches_up);
    if (energy) {
      EXPECT_NEAR(energy->energy.joules(), 40, 1);
    } else {
      EXPECT_THAT(energy.error().message, testing::HasSubstr("stands still"));
    }
  }
  // Of a step each 1.5 s, the newest reads are known, too.
  EnergyLedger rare({sensor, {}}, 10min);
  for (int i = 0; i < 200; ++i) {
    const double t = 0.1 * i;
    model::Readings readings;
    readings.counters.push_back({sensor.id, at(t), at(t + 1e-5), Energy::joules(75 * (i / 15))});
    rare.append(readings);
  }
  const auto known = rare.known();
  ASSERT_TRUE(known);
  EXPECT_GT(seconds(known->end - at(0)), 18);
}

// A sensor that fails again and again, in a program that runs for months.
TEST(EnergyTimeline, NotesAreOneOfEachTextAndForgottenWithTheirTime) {
  simulated::GpuSensors gpu;
  TimelineSensors sensors;
  sensors.counter = gpu.counter();
  sensors.power = gpu.ring();
  EnergyTimeline timeline(sensors);
  for (int i = 0; i != 600; ++i) {
    const HostTime t = at(i);
    timeline.append(model::PowerReading{simulated::kRing, t, Power::watts(100 + i % 3)});
    timeline.append(model::CounterReading{simulated::kCounter, t, t + 2s, Energy::joules(i)});
  }
  ASSERT_EQ(timeline.notes().size(), 1u);
  EXPECT_EQ(timeline.notes().front().count, 600u);
  timeline.forget_before(at(590));
  EXPECT_EQ(timeline.notes().size(), 1u);
  timeline.forget_before(at(600));
  EXPECT_TRUE(timeline.notes().empty());
}

}  // namespace
}  // namespace jouleprof::analysis
