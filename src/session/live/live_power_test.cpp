#include <gtest/gtest.h>

#include "session/live/live_engine.h"

namespace jouleprof::session {
namespace {

using model::DomainId;
using model::SensorId;
using model::SensorKind;
using std::chrono::seconds;

model::Sensor sensor(unsigned id, unsigned domain, SensorKind kind) {
  model::Sensor s;
  s.id = SensorId{id};
  s.domain = DomainId{domain};
  s.kind = kind;
  return s;
}
HostTime at(int s) { return HostTime{seconds{s}}; }

TEST(LivePower, PrefersTheRingToAPolledSensor) {
  LivePower live({sensor(0, 0, SensorKind::kPowerInstant), sensor(1, 0, SensorKind::kPowerRing)});
  EXPECT_FALSE(live.of(DomainId{0}, at(0)));
  model::Readings r;
  r.powers = {{SensorId{0}, at(1), Power::watts(900)},
              {SensorId{1}, at(1), Power::watts(100)},
              {SensorId{1}, at(2), Power::watts(300)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(2))->power, Power::watts(200));
  EXPECT_FALSE(live.of(DomainId{0}, at(20)));  // too old to be called live
  EXPECT_FALSE(live.of(DomainId{1}, at(2)));
}

TEST(LivePower, WhereASensorFailsThereIsNoneUntilTheNextReading) {
  LivePower live({sensor(0, 0, SensorKind::kPowerRing), sensor(1, 0, SensorKind::kPowerInstant)});
  model::Readings r;
  r.powers = {{SensorId{0}, at(1), Power::watts(400)}, {SensorId{1}, at(1), Power::watts(390)}};
  r.failures = {{SensorId{0}, at(1), {Errc::kUnavailable, "samples were missed before"}}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(2))->power, Power::watts(400));
  r.powers.clear();
  r.failures = {{SensorId{0}, at(2), {Errc::kUnavailable, "GPU is lost"}}};
  live.append(r);
  EXPECT_FALSE(live.of(DomainId{0}, at(2)));
  r.powers = {{SensorId{0}, at(3), Power::watts(300)}};
  r.failures.clear();
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(3))->power, Power::watts(300));
  // One that never answers again says nothing of the other.
  r.powers.clear();
  r.failures = {{SensorId{1}, at(4), {Errc::kUnavailable, "not supported"}}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(4))->power, Power::watts(300));
  // A batch holds a second: readings before the failure do not hide it.
  r.powers = {{SensorId{0}, at(5), Power::watts(300)}};
  r.failures = {{SensorId{0}, at(6), {Errc::kUnavailable, "GPU is lost"}}};
  live.append(r);
  EXPECT_FALSE(live.of(DomainId{0}, at(6)));
}

TEST(LivePower, UsesACoarseCounterOnlyWithoutAnotherSensor) {
  auto counter = sensor(0, 0, SensorKind::kEnergyCounter);
  counter.traits.refresh = std::chrono::milliseconds{100};
  LivePower live({counter, sensor(1, 0, SensorKind::kPowerInstant)});
  model::Readings r;
  // Seen one step late: 90 J in a second at 100 W.
  r.counters = {{SensorId{0}, at(1), at(1), Energy::joules(10)},
                {SensorId{0}, at(2), at(2), Energy::joules(100)}};
  live.append(r);
  EXPECT_FALSE(live.of(DomainId{0}, at(2)));
  r.counters = {{SensorId{0}, at(3), at(3), Energy::joules(210)}};
  r.powers = {{SensorId{1}, at(3), Power::watts(101)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(3))->power, Power::watts(101));
}

TEST(LivePower, DifferencesACounterExceptAcrossAWrap) {
  LivePower live({sensor(0, 0, SensorKind::kEnergyCounter)});
  model::Readings r;
  r.counters = {{SensorId{0}, at(1), at(1), Energy::joules(10)},
                {SensorId{0}, at(3), at(3), Energy::joules(70)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(3))->power, Power::watts(30));
  r.counters = {{SensorId{0}, at(4), at(4), Energy::joules(1)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(4))->power, Power::watts(30));
  r.counters = {{SensorId{0}, at(5), at(5), Energy::joules(6)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(5))->power, Power::watts(5));
}

TEST(LivePower, ACounterThatStandsStillShowsNoPower) {
  LivePower live({sensor(0, 0, SensorKind::kEnergyCounter)});
  const auto append = [&](double t, double joules) {
    const HostTime read{std::chrono::milliseconds{static_cast<int>(1000 * t)}};
    model::Readings r;
    r.counters = {{SensorId{0}, read, read, Energy::joules(joules)}};
    live.append(r);
  };
  for (int i = 0; i <= 30; ++i) append(0.1 * i, 5.0 * i);
  for (int i = 31; i <= 60; ++i) append(0.1 * i, 150);
  EXPECT_NEAR(live.of(DomainId{0}, at(6))->power.watts(), 50, 1);
  EXPECT_EQ(live.newest(DomainId{0}), at(6));
  for (int i = 61; i <= 63; ++i) append(0.1 * i, 150 + 5.0 * (i - 60));  // without what it missed
  EXPECT_NEAR(live.of(DomainId{0}, at(6))->power.watts(), 50, 1);
  for (int i = 64; i <= 200; ++i) append(0.1 * i, 165);
  EXPECT_FALSE(live.of(DomainId{0}, at(20)));
}

TEST(LivePower, GivesTheProvenanceOfTheSensorThatItShows) {
  auto estimate = sensor(0, 0, SensorKind::kPowerInstant);
  estimate.provenance = model::Provenance::kEstimated;
  LivePower live({sensor(1, 0, SensorKind::kPowerAverage), estimate});
  model::Readings r;
  r.powers = {{SensorId{0}, at(1), Power::watts(35)}};
  live.append(r);
  EXPECT_EQ(live.of(DomainId{0}, at(2))->provenance, model::Provenance::kEstimated);
  EXPECT_EQ(live.newest(DomainId{0}), at(1));
  EXPECT_FALSE(live.newest(DomainId{1}));
}

}  // namespace
}  // namespace jouleprof::session
