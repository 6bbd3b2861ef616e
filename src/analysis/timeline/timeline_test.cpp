#include "analysis/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

TEST(Timeline, ClosedFormsOfRampSquareAndSine) {
  const std::function<double(double)> forms[] = {
      [](double t) { return 100 + 20 * t; },
      [](double t) { return std::fmod(t, 0.4) < 0.2 ? 600.0 : 120.0; },
      [](double t) { return 300 + 150 * std::sin(2 * M_PI * t / 0.8); },
  };
  for (const auto& form : forms) {
    const Truth truth = course(form, 20);
    GpuSensors gpu;
    gpu.read_every = 0.03;
    EnergyTimeline timeline = fused(gpu, truth);
    const auto m = timeline.energy(at(2.0), at(17.0));
    ASSERT_TRUE(m);
    EXPECT_NEAR(m->energy.joules(), truth.joules(2, 17), m->repeatability.joules());
    EXPECT_NEAR(m->energy.joules(), truth.joules(2, 17), 0.002 * truth.joules(2, 17));
  }
}

TEST(Timeline, LoadLockedToTheCounterIsRightAtEveryPhase) {
  for (int phase = 0; phase < 5; ++phase) {
    for (const double read_every : {0.1, 5.0, 10.0}) {
      Truth truth;
      const double begin = 1 + 0.02 * phase;
      truth.hold(120, begin);
      for (int i = 0; i < 200; ++i) truth.hold(650, 0.03), truth.hold(120, 0.07);
      truth.hold(120, 1);
      GpuSensors gpu;
      gpu.seed = 3;
      gpu.read_every = read_every;
      EnergyTimeline timeline = fused(gpu, truth);
      const auto m = timeline.energy(at(begin), at(begin + 20));
      ASSERT_TRUE(m);
      const double whole = truth.joules(begin, begin + 20);
      EXPECT_NEAR(m->energy.joules(), whole, 0.01 * whole) << phase << " " << read_every;
    }
  }
}

TEST(Timeline, ConstantPowerPolledIsExactlyPowerTimesTime) {
  model::Sensor sensor{kRing, kGpu0, model::SensorKind::kPowerInstant, "instant", {}, {}};
  for (const bool traits : {false, true}) {
    if (traits) {
      sensor.traits.refresh = 100ms;
      sensor.traits.window = 25ms;
    }
    for (const double every : {0.001, 0.02, 0.13}) {
      EnergyTimeline timeline({std::nullopt, sensor});
      for (double t = 0; t < 10.2; t += every) {
        timeline.append(model::PowerReading{kRing, at(t), Power::watts(250)});
      }
      const auto m = timeline.energy(at(0.05), at(10.05));
      ASSERT_TRUE(m) << m.error().message;
      EXPECT_EQ(m->energy, Energy::joules(2500)) << every;
      EXPECT_EQ(timeline.energy(at(1), at(1.004))->energy, Energy::joules(1)) << every;
      EXPECT_EQ(m->method, "samples");
    }
  }
}

// Its values follow one another without a gap, so that a short command has nothing that they
// missed.
TEST(Timeline, FewValuesOfALoadModelHideNothing) {
  for (const auto provenance : {model::Provenance::kEstimated, model::Provenance::kMeasured}) {
    model::Sensor sensor{kRing,        kGpu0,      model::SensorKind::kPowerInstant,
                         "load model", provenance, {}};
    sensor.traits.refresh = sensor.traits.window = 1s;
    EnergyTimeline timeline({std::nullopt, sensor});
    for (const double t : {0.0, 1.05, 2.1, 3.15}) {
      timeline.append(model::PowerReading{kRing, at(t), Power::watts(4)});
    }
    timeline.set_work(at(0.5), at(2.5));
    const bool is_model = provenance == model::Provenance::kEstimated;
    EXPECT_EQ(timeline.hidden(at(0.5), at(2.5)).energy == Energy{}, is_model);
    EXPECT_EQ(timeline.energy(at(0.5), at(2.5))->error < Energy::joules(0.5), is_model);
  }
}

TEST(Timeline, IsAdditiveToTheMicrojoule) {
  const Truth truth = mixed(4, 12);
  EnergyTimeline timeline = fused({}, truth);
  std::mt19937 random(9);
  std::uniform_int_distribution<std::int64_t> ns(500'000'000, 11'000'000'000);
  for (int i = 0; i < 300; ++i) {
    std::vector<HostTime> cuts;
    for (int k = 0; k < 6; ++k) cuts.push_back(kEpoch + Duration{ns(random)});
    std::sort(cuts.begin(), cuts.end());
    Energy sum;
    for (std::size_t k = 1; k < cuts.size(); ++k) {
      const Energy part = timeline.energy(cuts[k - 1], cuts[k])->energy;
      EXPECT_GE(part, Energy{});
      sum += part;
    }
    EXPECT_EQ(sum, timeline.energy(cuts.front(), cuts.back())->energy);
  }
}

TEST(Timeline, LiveAndAfterwardsAgree) {
  const Truth truth = mixed(2, 60);
  GpuSensors gpu;
  EnergyTimeline after = fused(gpu, truth);
  EnergyTimeline live({gpu.counter(), gpu.ring()});
  const auto samples = gpu.samples(truth, 0, truth.end());
  const auto reads = counter_reads(gpu, truth);
  std::size_t s = 0;
  std::size_t r = 0;
  for (double now = 1; now < 59; now += 0.5) {
    while (r < reads.size() && reads[r].after < at(now)) live.append(reads[r++]);
    // The ring is read every two seconds.
    const double ring = std::floor(now / 2) * 2;
    while (s < samples.size() && samples[s].at < at(ring)) live.append(samples[s++]);
    if (ring < 4) continue;
    const auto m = live.energy(at(ring - 3), at(ring - 1));
    ASSERT_TRUE(m) << m.error().message;
    const double whole = truth.joules(ring - 3, ring - 1);
    EXPECT_NEAR(m->energy.joules(), whole, m->repeatability.joules() + 0.005 * whole) << now;
  }
  const auto a = live.energy(at(10), at(50));
  const auto b = after.energy(at(10), at(50));
  ASSERT_TRUE(a && b);
  EXPECT_NEAR(a->energy.joules(), b->energy.joules(), 5e-4 * b->energy.joules());
  // What is settled stays, to the microjoule.
  const Energy settled = live.energy(at(10), at(20))->energy;
  while (r < reads.size()) live.append(reads[r++]);
  while (s < samples.size()) live.append(samples[s++]);
  EXPECT_EQ(live.energy(at(10), at(20))->energy, settled);

  live.forget_before(at(30));
  EXPECT_FALSE(live.energy(at(10), at(20)));
  EXPECT_EQ(live.energy(at(35), at(50))->energy,
            live.energy(at(35), at(40))->energy + live.energy(at(40), at(50))->energy);
  EXPECT_NEAR(live.energy(at(35), at(50))->energy.joules(),
              after.energy(at(35), at(50))->energy.joules(), 5);
}

TEST(Timeline, ACounterAloneIsUniformBetweenItsReadings) {
  model::Sensor rapl{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
  rapl.traits.refresh = 1ms;
  const Truth truth = course([](double t) { return t < 5 ? 30.0 : 90.0; }, 10);
  EnergyTimeline timeline({rapl, std::nullopt});
  for (double t = 0; t < 10; t += 0.1) {
    timeline.append(
        model::CounterReading{kCounter, at(t), at(t + 1e-5), Energy::joules(7 + truth.joules(t))});
  }
  const auto m = timeline.energy(at(1), at(9));
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->energy.joules(), truth.joules(1, 9), 0.2);
  EXPECT_EQ(m->method, "counter");
  // A window shorter than the time between reads has a wide interval.
  const auto near_step = timeline.energy(at(4.99), at(5.01));
  ASSERT_TRUE(near_step);
  EXPECT_GT(near_step->repeatability.joules(), 0.5 * near_step->energy.joules());
}

TEST(Timeline, AResetLosesOnlyTheTimeAroundIt) {
  GpuSensors gpu;
  const Truth truth = course([](double t) { return t < 10 ? 300.0 : 500.0; }, 20);
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, 20)) timeline.append(r);
  for (auto r : gpu.reads(truth, 0.1, 20)) {
    if (r.before > at(12)) r.total -= Energy::joules(1000 + truth.joules(12));
    timeline.append(r);
  }
  const auto m = timeline.energy(at(1), at(19));
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->energy.joules(), truth.joules(1, 19), 0.003 * truth.joules(1, 19));
  EXPECT_EQ(timeline.notes().size(), 1u);
  EXPECT_FALSE(timeline.counter_only(at(1), at(19)));
  EXPECT_TRUE(timeline.counter_only(at(13), at(19)));
}

// A counter that falls or jumps in its last reading was dropped without a word.
TEST(Timeline, ALastReadingThatIsNotUsedIsNoted) {
  for (const double last : {5.0, 9e6}) {
    GpuSensors gpu;
    EnergyTimeline timeline({gpu.counter(), std::nullopt});
    for (int i = 0; i < 20; ++i) {
      const double joules = i < 19 ? 1000 + 200.0 * i : last;
      timeline.append(model::CounterReading{kCounter, at(i), at(i + 1e-3), Energy::joules(joules)});
    }
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(timeline.notes().size(), 1u) << last;
      EXPECT_THAT(timeline.notes()[0].text, testing::HasSubstr("in its last reading"));
      EXPECT_EQ(timeline.notes()[0].count, 1u);
      EXPECT_EQ(timeline.notes()[0].at, at(19));
    }
    EXPECT_NEAR(timeline.energy(at(1), at(17))->energy.joules(), 3200, 1);
  }
}

TEST(Timeline, AFrozenCounterIsReportedAndNotUsed) {
  // It catches up when it moves again, or it goes on from where it stood.
  for (const bool catches_up : {true, false}) {
    GpuSensors gpu;
    const Truth truth = course([](double t) { return std::fmod(t, 2) < 1 ? 300.0 : 500.0; }, 40);
    EnergyTimeline timeline({gpu.counter(), gpu.ring()});
    for (const auto& r : gpu.samples(truth, 0, 40)) timeline.append(r);
    Energy held;
    Energy lost;
    for (auto r : gpu.reads(truth, 0.1, 40)) {
      if (r.before < at(15)) {
        held = r.total;
      } else if (r.before < at(25)) {
        lost = r.total - held;
        r.total = held;
      } else if (!catches_up) {
        r.total -= lost;
      }
      timeline.append(r);
    }
    const double whole = truth.joules(5, 35);
    const auto m = timeline.energy(at(5), at(35));
    ASSERT_TRUE(m);
    EXPECT_NEAR(m->energy.joules(), whole, 0.01 * whole) << catches_up;
    ASSERT_FALSE(timeline.notes().empty());
    EXPECT_THAT(timeline.notes()[0].text, testing::HasSubstr("did not change"));
    EXPECT_NEAR(timeline.energy(at(16), at(24))->energy.joules(), truth.joules(16, 24), 60);
  }
}

// RAPL's counter, which stands still for less than two seconds or for more.
TEST(Timeline, ACounterAloneThatCatchesUpAtOnceHasNoBurst) {
  for (const double still : {0.3, 1.5, 4.0}) {
    model::Sensor rapl{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
    rapl.traits.refresh = 1ms;
    EnergyTimeline timeline({rapl, std::nullopt});
    for (int i = 0; i < 1000; ++i) {
      const double t = 0.01 * i;
      const double shown = t > 3 && t < 3 + still ? 3 : t;
      timeline.append(
          model::CounterReading{kCounter, at(t), at(t + 1e-5), Energy::joules(7 + 50 * shown)});
    }
    const auto inside = timeline.energy(at(3.1), at(3.2));
    ASSERT_TRUE(inside);
    EXPECT_NEAR(inside->energy.joules(), 5, 0.1) << still;
    EXPECT_GT(inside->error.joules(), 0.2);
    EXPECT_NEAR(timeline.energy(at(3 + still - 0.005), at(3 + still + 0.1))->energy.joules(), 5.25,
                0.5);
    EXPECT_NEAR(timeline.energy(at(1), at(9))->energy.joules(), 400, 1);
    ASSERT_EQ(timeline.notes().size(), 1u) << still;
    EXPECT_THAT(timeline.notes()[0].text, testing::HasSubstr(still < 2 ? "caught up" : "seconds"));
  }
  // One that goes on slowly, and a burst after rest, are as they were.
  for (const double watts : {2.0, 1000.0}) {
    model::Sensor rapl{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
    EnergyTimeline timeline({rapl, std::nullopt});
    double joules = 7;
    for (int i = 0; i < 1000; ++i) {
      const double t = 0.01 * i;
      joules += t > 3 && t < 4 ? 0 : 0.01 * (t >= 4 && t < 5 ? watts : 50);
      timeline.append(model::CounterReading{kCounter, at(t), at(t + 1e-5), Energy::joules(joules)});
    }
    EXPECT_NEAR(timeline.energy(at(3.1), at(3.9))->energy.joules(), 0, 0.01) << watts;
    EXPECT_THAT(timeline.notes(), testing::IsEmpty());
  }
}

TEST(Timeline, AFaultAtEveryReadIsOneNoteWithItsNumber) {
  GpuSensors gpu;
  EnergyTimeline timeline({gpu.counter(), std::nullopt});
  constexpr int kReads = 10'000;
  for (int i = 0; i < kReads; ++i) {
    timeline.append(
        model::CounterReading{kCounter, at(10.0 * i), at(10.0 * i + 2), Energy::joules(7 + i)});
  }
  ASSERT_EQ(timeline.notes().size(), 1u);
  const Note& note = timeline.notes()[0];
  EXPECT_THAT(note.text, testing::HasSubstr("took more than a second"));
  EXPECT_EQ(note.count, std::size_t{kReads});
  EXPECT_EQ(note.at, at(0));
  EXPECT_EQ(note.last, at(10.0 * (kReads - 1)));
}

// Two days at 10 Hz. With a cost that grows with the square of the reads this takes most of an
// hour.
TEST(Timeline, ACounterThatStandsStillForTwoMillionReadsIsRead) {
  model::Sensor rapl{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
  rapl.traits.refresh = 1ms;
  EnergyTimeline timeline({rapl, std::nullopt});
  constexpr int kReads = 2'000'000;
  for (int i = 0; i < kReads; ++i) {
    timeline.append(
        model::CounterReading{kCounter, at(0.1 * i), at(0.1 * i + 1e-5), Energy::joules(7)});
  }
  // Two days without a change are no measurement of 0 J.
  const auto m = timeline.energy(at(1), at(0.1 * kReads - 1));
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, Errc::kUnavailable);
  ASSERT_EQ(timeline.notes().size(), 1u);
  EXPECT_THAT(timeline.notes()[0].text, testing::HasSubstr("did not change"));
}

TEST(Timeline, MissingSamplesWidenTheIntervalUnlessTheCounterCoversThem) {
  GpuSensors gpu;
  const Truth truth = mixed(6, 20);
  EnergyTimeline both({gpu.counter(), gpu.ring()});
  EnergyTimeline alone({std::nullopt, gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, 20)) {
    if (r.at > at(8) && r.at < at(9)) continue;
    both.append(r);
    alone.append(r);
  }
  for (const auto& r : gpu.reads(truth, 0.1, 20)) both.append(r);
  const double whole = truth.joules(5, 12);
  const auto bridged = both.energy(at(5), at(12));
  const auto open = alone.energy(at(5), at(12));
  ASSERT_TRUE(bridged && open);
  EXPECT_NEAR(bridged->energy.joules(), whole, 0.002 * whole);
  EXPECT_GT(open->repeatability.joules(), 5 * bridged->repeatability.joules());
  EXPECT_NEAR(open->energy.joules(), whole, open->repeatability.joules());
  EXPECT_FALSE(alone.energy(at(7.9), at(9.1)).has_value() &&
               alone.energy(at(7.9), at(9.1))->repeatability.joules() < 20);
  EXPECT_NEAR(seconds(both.missing_samples(at(5), at(12))), 1, 0.1);
  // Power may have been higher in that time.
  EXPECT_FALSE(both.peak(at(5), at(12)));
  EXPECT_FALSE(both.peak(at(8.4), at(12)));
  EXPECT_TRUE(both.peak(at(5), at(7.9)));
  EXPECT_TRUE(both.peak(at(9.1), at(12)));
}

// A sensor without a counter says nothing of the time in which it could not be read: any power that
// the supply gives, of a board up to its limit.
TEST(Timeline, MissingSamplesHoldAnyPowerWhereNoCounterCoversThem) {
  constexpr model::SensorId kLimit{7};
  for (const double limit : {0.0, 1000.0}) {
    auto meter = GpuSensors{}.ring();
    meter.traits = {};
    meter.kind = model::SensorKind::kPowerInstant;
    EnergyTimeline timeline({std::nullopt, meter, {}, kLimit});
    if (limit > 0) timeline.append(model::GaugeReading{kLimit, at(0), limit});
    for (double t = 0; t <= 12; t += 0.25) {
      if (t <= 3 || t >= 8) timeline.append({meter.id, at(t), Power::watts(400)});
    }
    const auto open = timeline.energy(at(0.5), at(11.5));
    ASSERT_TRUE(open);
    const double most = 6 * 400 + 5 * (limit > 0 ? limit : 1000);
    EXPECT_GE(open->energy.joules() + open->repeatability.joules(), most) << limit;
    EXPECT_LE(open->energy.joules() - open->repeatability.joules(), 6 * 400) << limit;
  }
}

TEST(Timeline, ThePhaseOfAnHourWithADriftingClockHolds) {
  GpuSensors gpu;
  gpu.drift = 15e-6;
  gpu.read_every = 5;
  const Truth truth =
      course([](double t) { return std::fmod(t, 7) < 3 ? 600.0 : 120.0; }, 3600, 0.02);
  std::vector<double> times;
  for (double t = 0.1; t < 1.1; t += 0.025) times.push_back(t);
  for (double t = 6; t < 3600; t += 5) {
    times.push_back(t);
    // Once in about a minute a few reads around an update.
    if (std::fmod(t, 60) < 5) {
      for (int i = 1; i < 7; ++i) times.push_back(t + 0.02 * i);
    }
  }
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, 3600)) timeline.append(r);
  for (const auto& r : gpu.reads(truth, times)) timeline.append(r);
  for (const double a : {100.3, 1000.7, 3500.2}) {
    const auto m = timeline.energy(at(a), at(a + 20));
    ASSERT_TRUE(m);
    const double whole = truth.joules(a, a + 20);
    EXPECT_NEAR(m->energy.joules(), whole, m->repeatability.joules()) << a;
    EXPECT_NEAR(m->energy.joules(), whole, 0.005 * whole) << a;
  }
  const auto hour = timeline.energy(at(1), at(3590));
  ASSERT_TRUE(hour);
  EXPECT_NEAR(hour->energy.joules(), truth.joules(1, 3590), 2e-4 * truth.joules(1, 3590));
}

TEST(Timeline, RefusesWindowsOutsideOfItsData) {
  EnergyTimeline empty({GpuSensors{}.counter(), GpuSensors{}.ring()});
  EXPECT_EQ(empty.energy(at(0), at(1)).error().code, Errc::kUnavailable);
  const Truth truth = mixed(1, 10);
  EnergyTimeline timeline = fused({}, truth);
  EXPECT_EQ(timeline.energy(at(3), at(2)).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(timeline.energy(at(3), at(20)).error().code, Errc::kUnavailable);
  EXPECT_EQ(timeline.energy(at(-5), at(2)).error().code, Errc::kUnavailable);
  EXPECT_EQ(timeline.energy(at(3), at(3))->energy, Energy{});
}

// amdgpu's power1_average without power1_average_interval; two reads come together at first.
TEST(Timeline, AnAverageOverAnUnknownTimeBoundsAnEnergy) {
  model::Sensor sensor{kRing, kGpu0, model::SensorKind::kPowerAverage, "power1_average", {}, {}};
  EnergyTimeline timeline({std::nullopt, sensor});
  timeline.append(model::PowerReading{kRing, at(0.49), Power::watts(45)});
  for (int i = 1; i < 20; ++i) {
    const Power power = Power::watts(i < 10 ? 45 : 90);
    timeline.append(model::PowerReading{kRing, at(0.5 * i), power});
  }
  const auto steady = timeline.energy(at(1), at(3));
  ASSERT_TRUE(steady) << steady.error().message;
  EXPECT_NEAR(steady->energy.joules(), 90, 0.1);
  EXPECT_GT(steady->repeatability.joules(), 5);  // it may be a mean over nearly no time
  const auto rising = timeline.energy(at(1), at(5));
  ASSERT_TRUE(rising) << rising.error().message;
  EXPECT_GT(rising->repeatability.joules(), 45);  // it may have risen a second earlier
}

// Also before a second is over, after which one value counts as frozen.
TEST(Timeline, ASensorThatShowsOnlyZeroGivesNoEnergy) {
  const model::Sensor sensor{kRing, kGpu0, model::SensorKind::kPowerAverage, "average", {}, {}};
  for (const int reads : {5, 500}) {
    EnergyTimeline timeline({std::nullopt, sensor});
    for (int i = 0; i < reads; ++i) {
      timeline.append(model::PowerReading{kRing, at(0.1 * i), Power{}});
    }
    const auto m = timeline.energy(at(0), at(0.1 * (reads - 1)));
    ASSERT_FALSE(m);
    EXPECT_EQ(m.error().message.substr(0, 34), "average showed 0 W at every readin");
    EXPECT_FALSE(timeline.up_to(at(0.2)));
  }
}

TEST(Timeline, ACounterThatNeverMovedGivesNoEnergy) {
  model::Sensor sensor{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "counter", {}, {}};
  sensor.traits.refresh = 1s;
  EnergyTimeline timeline({sensor, std::nullopt});
  for (int i = 0; i < 5; ++i) {
    timeline.append(
        model::CounterReading{kCounter, at(0.05 * i), at(0.05 * i), Energy::joules(2000)});
  }
  const auto m = timeline.energy(at(0), at(0.2));
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().message,
            "counter stands still at 2000 J over 5 reads in 0.2 s: the machine is a guest, the "
            "sensor is stuck, or it is renewed more rarely");
}

}  // namespace
}  // namespace jouleprof::analysis
