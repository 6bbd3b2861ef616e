#include "session/live/live_engine.h"

#include <gmock/gmock.h>

#include "model/device/sensor.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using model::DomainId;
using model::Provenance;
using model::SensorId;
using model::SensorKind;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr HostTime kStart{100s};

ClockPoint clock(HostTime t) { return {t, RealTime{t.time_since_epoch() + 1000h}, {}}; }

class LiveEngineTest : public testing::Test {
 protected:
  DomainId add_domain(model::DomainKind kind, std::string device, std::string reason = "") {
    const DomainId id{static_cast<std::uint32_t>(domains_.size())};
    domains_.push_back({id, kind, std::move(device), "", "", {}, true, std::move(reason)});
    return id;
  }
  SensorId add_sensor(DomainId domain, SensorKind kind, Provenance provenance,
                      std::string_view name = "sensor") {
    model::Sensor sensor;
    sensor.id = SensorId{static_cast<std::uint32_t>(sensors_.size())};
    sensor.domain = domain;
    sensor.kind = kind;
    sensor.name = name;
    sensor.provenance = provenance;
    if (kind == SensorKind::kPowerRing) sensor.traits.refresh = sensor.traits.window = 20ms;
    sensors_.push_back(sensor);
    return sensor.id;
  }
  LiveEngine make() const { return LiveEngine(domains_, sensors_, 10min); }

  // `watts` from kStart + from to kStart + to, every 20 ms.
  static model::Readings steady(SensorId sensor, Duration from, Duration to, double watts) {
    model::Readings readings;
    for (Duration t = from; t < to; t += 20ms) {
      readings.powers.push_back({sensor, kStart + t, Power::watts(watts)});
    }
    return readings;
  }

  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
};

TEST_F(LiveEngineTest, GivesPowerAndCumulativeEnergy) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto ring = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured);
  auto engine = make();
  Energy last;
  for (int s = 0; s < 5; ++s) {
    engine.append(steady(ring, s * 1s, (s + 1) * 1s, 250));
    const auto snapshot = engine.snapshot(clock(kStart + (s + 1) * 1s), kStart);
    ASSERT_EQ(snapshot.domains.size(), 1u);
    const auto& domain = snapshot.domains[0];
    EXPECT_EQ(domain.domain.device, "gpu0");
    EXPECT_EQ(domain.power, Power::watts(250));
    ASSERT_TRUE(domain.energy) << domain.reason;
    EXPECT_NEAR(domain.energy->energy.joules(),
                250 * seconds(domain.energy_end - domain.energy_begin), 1e-3);
    EXPECT_GT(domain.energy->error, Energy{});
    EXPECT_GT(domain.energy->energy, last);
    last = domain.energy->energy;
    EXPECT_EQ(domain.energy_end, kStart + (s + 1) * 1s - 20ms);
    EXPECT_EQ(domain.age, 20ms);
    EXPECT_EQ(snapshot.elapsed, (s + 1) * 1s);
    EXPECT_EQ(snapshot.begin, kStart);
  }
}

// A counter is read every 10 s under `run`: between two reads the samples show the energy.
TEST_F(LiveEngineTest, EnergyGrowsBetweenReadsOfTheCounter) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto ring = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured);
  const auto counter = add_sensor(gpu, SensorKind::kEnergyCounter, Provenance::kMeasured);
  auto engine = make();
  const auto read = [&](model::Readings& to, Duration at) {
    const HostTime t = kStart + at;
    to.counters.push_back({counter, t, t, Energy::joules(5000 + 250 * seconds(at))});
  };
  Energy last;
  for (int s = 0; s < 14; ++s) {
    auto readings = steady(ring, s * 1s, (s + 1) * 1s, 250);
    if (s == 0) {
      for (Duration t{}; t < 1s; t += 100ms) read(readings, t);
    }
    if (s == 11) read(readings, 11s);
    engine.append(readings);
    const auto domain = engine.snapshot(clock(kStart + (s + 1) * 1s), kStart).domains[0];
    ASSERT_TRUE(domain.energy) << domain.reason;
    EXPECT_NEAR(domain.energy->energy.joules(), 250 * (s + 1), 30) << s;
    EXPECT_GT(domain.energy->energy, last) << s;
    last = domain.energy->energy;
  }
}

// As that of a command which begins after the counter was read: the next read may be 10 s later.
TEST_F(LiveEngineTest, ShowsEnergySinceABeginAfterTheLastReadOfTheCounter) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto ring = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured);
  const auto counter = add_sensor(gpu, SensorKind::kEnergyCounter, Provenance::kMeasured);
  auto engine = make();
  const auto read = [&](model::Readings& to, Duration at) {
    const HostTime t = kStart + at;
    to.counters.push_back({counter, t, t, Energy::joules(5000 + 250 * seconds(at))});
  };
  Energy last;
  for (int s = 0; s < 14; ++s) {
    auto readings = steady(ring, s * 1s, (s + 1) * 1s, 250);
    if (s == 0) {
      for (Duration t{}; t < 1s; t += 100ms) read(readings, t);
    }
    if (s == 11) read(readings, 11s);
    engine.append(readings);
    if (s < 3) continue;
    const auto domain = engine.snapshot(clock(kStart + (s + 1) * 1s), kStart + 2s).domains[0];
    ASSERT_TRUE(domain.energy) << domain.reason;
    EXPECT_NEAR(domain.energy->energy.joules(), 250 * (s - 1), 30) << s;
    EXPECT_GT(domain.energy->energy, last) << s;
    last = domain.energy->energy;
  }
}

TEST_F(LiveEngineTest, CountsEnergyAnewFromAnotherBegin) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto ring = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured);
  auto engine = make();
  engine.append(steady(ring, 0s, 10s, 100));
  EXPECT_NEAR(engine.snapshot(clock(kStart + 10s), kStart).domains[0].energy->energy.joules(), 998,
              1);
  const auto later = engine.snapshot(clock(kStart + 10s), kStart + 8s);
  EXPECT_NEAR(later.domains[0].energy->energy.joules(), 198, 1);
  EXPECT_EQ(later.elapsed, 2s);
}

// `monitor` once took the weakest provenance of all sensors, whichever sensor it showed, and the
// live line of `run` had none.
TEST_F(LiveEngineTest, TheProvenanceIsThatOfTheSensorsShown) {
  const auto cpu = add_domain(model::DomainKind::kCpu, "package-0");
  const auto measured = add_sensor(cpu, SensorKind::kPowerRing, Provenance::kMeasured);
  add_sensor(cpu, SensorKind::kPowerInstant, Provenance::kEstimated);
  const auto other = add_domain(model::DomainKind::kDram, "dram");
  const auto estimate = add_sensor(other, SensorKind::kPowerRing, Provenance::kEstimated);
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto simulated = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kSimulated);
  auto engine = make();
  // Before the first reading it is what the sensors will give.
  auto domains = engine.snapshot(clock(kStart), kStart).domains;
  EXPECT_EQ(domains[0].provenance, Provenance::kMeasured);
  EXPECT_EQ(domains[1].provenance, Provenance::kEstimated);
  EXPECT_EQ(domains[2].provenance, Provenance::kSimulated);
  for (const auto sensor : {measured, estimate, simulated}) {
    engine.append(steady(sensor, 0s, 2s, 50));
  }
  domains = engine.snapshot(clock(kStart + 2s), kStart).domains;
  EXPECT_EQ(domains[0].provenance, Provenance::kMeasured);
  EXPECT_EQ(domains[1].provenance, Provenance::kEstimated);
  EXPECT_EQ(domains[2].provenance, Provenance::kSimulated);
}

TEST_F(LiveEngineTest, WhatIsAbsentHasAReason) {
  add_domain(model::DomainKind::kCpu, "package-0", "cannot read energy_uj: permission denied");
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured, "ring");
  auto engine = make();
  const auto domains = engine.snapshot(clock(kStart + 1s), kStart).domains;
  EXPECT_EQ(domains[0].reason, "cannot read energy_uj: permission denied");
  EXPECT_EQ(domains[0].provenance, Provenance::kUnavailable);
  EXPECT_THAT(domains[1].reason, HasSubstr("no readings of ring yet"));
  for (const auto& domain : domains) {
    EXPECT_FALSE(domain.energy);
    EXPECT_FALSE(domain.power);
    EXPECT_FALSE(domain.age);
    EXPECT_THAT(domain.gauges, IsEmpty());
  }
}

TEST_F(LiveEngineTest, ASilentSensorKeepsItsEnergyAndLosesItsPower) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto ring = add_sensor(gpu, SensorKind::kPowerRing, Provenance::kMeasured);
  auto engine = make();
  engine.append(steady(ring, 0s, 2s, 100));
  const auto domain = engine.snapshot(clock(kStart + 20s), kStart).domains[0];
  EXPECT_FALSE(domain.power);
  EXPECT_EQ(domain.age, 18020ms);
  ASSERT_TRUE(domain.energy);
  EXPECT_EQ(domain.energy_end, kStart + 1980ms);
}

TEST_F(LiveEngineTest, GaugesAreThoseOfTheLastTenSeconds) {
  const auto gpu = add_domain(model::DomainKind::kGpu, "gpu0");
  const auto clocks =
      add_sensor(gpu, SensorKind::kGauge, Provenance::kMeasured, model::gauge::kSmClock);
  const auto reasons =
      add_sensor(gpu, SensorKind::kGauge, Provenance::kMeasured, model::gauge::kClockEventReasons);
  auto engine = make();
  model::Readings readings;
  readings.gauges = {{clocks, kStart, 1.98e9}, {reasons, kStart + 5s, 0x44}};
  engine.append(readings);
  auto domain = engine.snapshot(clock(kStart + 6s), kStart).domains[0];
  EXPECT_EQ(domain.gauge(model::gauge::kSmClock), 1.98e9);
  const auto bits = domain.gauge(model::gauge::kClockEventReasons);
  ASSERT_TRUE(bits);
  EXPECT_THAT(model::ClockReasons::of_gauge(static_cast<double>(*bits)).names(),
              testing::ElementsAre("power_limit", "hardware_thermal"));
  domain = engine.snapshot(clock(kStart + 12s), kStart).domains[0];
  EXPECT_FALSE(domain.gauge(model::gauge::kSmClock));
  EXPECT_TRUE(domain.gauge(model::gauge::kClockEventReasons));
  // A reading before the failure, in its batch, does not hide it.
  readings.gauges = {{clocks, kStart + 12s, 1.98e9}, {reasons, kStart + 13s, 0x44}};
  readings.failures = {{clocks, kStart + 13s, {Errc::kUnavailable, "GPU is lost"}},
                       {reasons, kStart + 13s, {Errc::kUnavailable, "readings were missed"}}};
  engine.append(readings);
  domain = engine.snapshot(clock(kStart + 13s), kStart).domains[0];
  EXPECT_FALSE(domain.gauge(model::gauge::kSmClock));
  EXPECT_TRUE(domain.gauge(model::gauge::kClockEventReasons));
}

// Packages whose CPU time is looked at once a second.
class CpuUseTest : public LiveEngineTest {
 protected:
  // The first package's utilisation after a second in which the CPUs were busy for `busy`, all four
  // together, or in which nothing looked.
  std::optional<double> look(LiveEngine& engine, std::optional<Duration> busy) {
    now_ += 1s;
    if (busy) {
      busy_ += *busy;
      engine.append({model::MachineReading{now_, busy_, 4 * now_.time_since_epoch(), 0}});
    }
    const auto domains = engine.snapshot(clock(now_), kStart).domains;
    return domains.at(0).gauge(model::gauge::kCpuUtilisation);
  }

  HostTime now_ = kStart;
  Duration busy_{};
};

TEST_F(CpuUseTest, IsTheShareOfBusyTime) {
  add_domain(model::DomainKind::kCpu, "package-0");
  auto engine = make();
  EXPECT_FALSE(look(engine, 1s));  // one look is no difference
  EXPECT_EQ(look(engine, 1s), 0.25);
  EXPECT_EQ(look(engine, std::nullopt), 0.25);
  EXPECT_EQ(look(engine, 2s), 0.25);  // over both seconds
  EXPECT_EQ(look(engine, 4s), 1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(look(engine, std::nullopt));
  EXPECT_FALSE(look(engine, std::nullopt));  // too old
}

TEST_F(CpuUseTest, ImpossibleReadingsGiveNone) {
  add_domain(model::DomainKind::kCpu, "package-0");
  auto engine = make();
  look(engine, 1s);
  EXPECT_FALSE(look(engine, 5s));   // busier than there are CPUs
  EXPECT_FALSE(look(engine, -1s));  // a counter went back
}

TEST_F(CpuUseTest, SeveralPackagesShareOneFigureThatBelongsToNone) {
  add_domain(model::DomainKind::kCpu, "package-0");
  add_domain(model::DomainKind::kCpu, "package-1");
  auto engine = make();
  look(engine, 1s);
  EXPECT_FALSE(look(engine, 1s));
}

}  // namespace
}  // namespace jouleprof::session
