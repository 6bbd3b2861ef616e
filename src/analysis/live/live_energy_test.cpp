#include "analysis/live/live_energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/live/live_feed_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using testing::HasSubstr;

Truth square(double length) {
  return course([](double t) { return std::fmod(t, 0.5) < 0.3 ? 600.0 : 120.0; }, length);
}

TEST(LiveEnergyTest, KnowsOnceTheCounterHasBeenUpdatedAfterwards) {
  Live live(course([](double) { return 250.0; }, 20));
  live.until(10);
  EXPECT_FALSE(live.energy.knows(at(10), at(10)));
  EXPECT_FALSE(live.energy.knows(at(9.98), at(10)));
  EXPECT_TRUE(live.energy.knows(at(9.8), at(10)));
  // Sensors that have fallen silent are not waited for.
  EXPECT_TRUE(live.energy.knows(at(10.01), at(14)));
  const auto m = live.window(9, 9.8);
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->energy.joules(), 200, 1);
}

TEST(LiveEnergyTest, ReportedEnergiesNeverChangeAndPartsSum) {
  Live live(square(60));
  std::vector<std::pair<double, double>> parts;
  std::vector<Energy> reported;
  for (double t = 3; t < 55; t += 0.37) {
    live.until(t + 0.37 + 0.15);
    parts.emplace_back(t, t + 0.37);
    const auto m = live.window(t, t + 0.37);
    ASSERT_TRUE(m);
    EXPECT_GE(m->energy, Energy{});
    reported.push_back(m->energy);
  }
  live.until(60);
  Energy sum;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(live.window(parts[i].first, parts[i].second)->energy, reported[i]);
    sum += reported[i];
  }
  // Neighbours share their edges: the parts make up the whole, to the microjoule.
  const auto whole = live.window(parts.front().first, parts.back().second);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->energy, sum);
  const double truth = square(60).joules(parts.front().first, parts.back().second);
  EXPECT_NEAR(whole->energy.joules() / truth, 1, 0.002);
  // A parent that is a little longer on both sides has at least as much.
  EXPECT_GE(live.window(parts.front().first - 1e-4, parts.back().second + 1e-4)->energy, sum);
}

// A guess of the end would be remembered, and bend the window's energy for good.
TEST(LiveEnergyTest, AnEndThatIsNotReportedYetHasNoEnergyAndLeavesNoTrace) {
  Live asked(square(20));
  Live unasked(square(20));
  for (double now = 10; now < 10.2; now += 0.02) {
    asked.until(now);
    const auto early = asked.energy.reported_energy(at(9.7), at(10.1), at(now));
    EXPECT_EQ(early[0].has_value(), asked.energy.knows(at(10.1), at(now))) << now;
  }
  asked.until(15);
  unasked.until(15);
  const auto m = asked.energy.reported_energy(at(9.7), at(10.1), at(15));
  ASSERT_TRUE(m[0]);
  EXPECT_NEAR(m[0]->energy.joules(), unasked.window(9.7, 10.1)->energy.joules(), 0.5);
}

TEST(LiveEnergyTest, EarlyAnswersDoNotDriftAwayFromTheTruth) {
  // The first question comes before the counter's edges are known at all.
  Live live(square(40));
  live.until(0.3);
  ASSERT_TRUE(live.window(0.1, 0.2));
  live.until(40);
  const auto m = live.window(0.1, 39);
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->energy.joules() / square(40).joules(0.1, 39), 1, 0.003);
}

TEST(LiveEnergyTest, ALongWindowOutlivesTheHistory) {
  Live live(square(300), 30s);
  for (double t = 1; t <= 300; t += 1) live.until(t);
  const auto m = live.window(20.3, 290);
  ASSERT_TRUE(m) << m.error().message;
  const double truth = square(300).joules(20.3, 290);
  EXPECT_NEAR(m->energy.joules(), truth, m->repeatability.joules());
  EXPECT_LT(m->repeatability.joules(), 300);  // a second's worth of the change of power
  const auto unknown = live.window(-5, 290);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kUnavailable);
}

TEST(LiveEnergyTest, ASensorThatNeverSpokeIsNotWaitedForEveryTime) {
  const GpuSensors sensors;
  LiveEnergy energy({gpu0()}, {sensors.counter()}, 10min);
  EXPECT_FALSE(energy.knows(at(1), at(1)));
  EXPECT_FALSE(energy.knows(at(1), at(2)));
  EXPECT_TRUE(energy.knows(at(5), at(5)));
  EXPECT_FALSE(energy.energy(at(4), at(5))[0]);
}

TEST(LiveEnergyTest, WithoutASensorThereIsAReason) {
  model::Domain dram;
  dram.id = model::DomainId{1};
  dram.device = "dram";
  dram.unavailable_reason = "no DRAM sensor";
  LiveEnergy energy({dram}, {}, 10min);
  EXPECT_TRUE(energy.knows(at(1), at(1)));
  const auto m = energy.energy(at(0), at(1));
  ASSERT_FALSE(m[0]);
  EXPECT_EQ(m[0].error().message, "no DRAM sensor");
}

TEST(LiveEnergyTest, AFrozenSensorIsNotWaitedFor) {
  model::Sensor sensor{kRing, kGpu0, model::SensorKind::kPowerInstant, "instant", {}, {}};
  sensor.traits.refresh = 100ms;
  sensor.traits.window = 100ms;
  LiveEnergy energy({gpu0()}, {sensor}, 10min);
  const auto append = [&](double t, double watts) {
    model::Readings readings;
    readings.powers.push_back({kRing, at(t), Power::watts(watts)});
    energy.append(readings);
  };
  for (int i = 0; i < 40; ++i) append(0.1 * i, 100 + i % 7);
  EXPECT_FALSE(energy.knows(at(4.5), at(4.5)));
  for (int i = 40; i < 120; ++i) append(0.1 * i, 300);
  EXPECT_TRUE(energy.knows(at(11.85), at(11.9)));
  EXPECT_FALSE(energy.knows(at(12), at(12)));  // it may wake up
  // It does not: a service that asks every second waits for it once.
  EXPECT_FALSE(energy.knows(at(13), at(13.8)));
  EXPECT_TRUE(energy.knows(at(16), at(16)));
  EXPECT_TRUE(energy.knows(at(17), at(17)));
  append(17.1, 300);
  EXPECT_FALSE(energy.knows(at(18), at(18)));
}

TEST(WindowTotalsTest, SumsLongWindows) {
  Live live(square(60));
  double truth = 0;
  for (double t = 2; t < 50; t += 0.5) {
    live.energy.add(7, at(t), at(t + 0.3));
    truth += square(60).joules(t, t + 0.3);
    live.until(t + 1);
  }
  live.until(60);
  const auto total = live.energy.total(7);
  ASSERT_TRUE(total);
  EXPECT_EQ(total->count, 96u);
  EXPECT_EQ(total->resolved_count, 96u);
  EXPECT_EQ(total->length, 96 * 300ms);
  ASSERT_TRUE(total->energies[0]);
  EXPECT_NEAR(total->energies[0]->energy.joules() / truth, 1, 0.006);
  // Edges in step with the samples all err alike.
  EXPECT_NEAR(total->energies[0]->energy.joules(), truth,
              total->energies[0]->repeatability.joules());
  EXPECT_FALSE(live.energy.total(8));
}

TEST(WindowTotalsTest, MillionsOfShortWindowsAreShares) {
  // 250 W all along; windows of 10 us every 20 us cover half of it.
  Live live(course([](double) { return 250.0; }, 20));
  std::uint64_t n = 0;
  for (double t = 2; t < 12; t += 1) {
    for (int i = 0; i < 50'000; ++i, ++n) {
      const double begin = t + 20e-6 * i;
      live.energy.add(3, at(begin), at(begin + 10e-6));
    }
    live.until(t + 1.5);
  }
  live.until(20);
  const auto total = live.energy.total(3);
  ASSERT_TRUE(total);
  EXPECT_EQ(total->count, n);
  EXPECT_EQ(total->resolved_count, n);
  ASSERT_TRUE(total->energies[0]);
  EXPECT_NEAR(total->energies[0]->energy.joules(), 1250, 15);
  // The power might as well have been inside of the windows only, or outside: the interval says so.
  EXPECT_GT(total->energies[0]->high().joules(), 2400);
  EXPECT_LT(total->energies[0]->low().joules(), 100);
}

TEST(WindowTotalsTest, AnUnknownStretchMakesTheTotalUnavailable) {
  Live live(square(20));
  live.energy.add(1, at(-30), at(-29));
  live.energy.add(1, at(5), at(6));
  live.until(20);
  const auto total = live.energy.total(1);
  ASSERT_TRUE(total);
  EXPECT_FALSE(total->energies[0]);
}

TEST(LiveEnergyTest, AServiceForgetsWhatItHasReported) {
  Live kept(square(100), 30s);
  Live forgetful(square(100), 30s);
  Energy sum;
  for (int t = 5; t < 95; t += 5) {
    for (Live* live : {&kept, &forgetful}) live->until(t + 1.0);
    forgetful.energy.forget_before(at(t - 5));
    ASSERT_TRUE(forgetful.energy.knows(0, at(t)));
    const auto energy = forgetful.energy.energy_of(0, at(t - 5 + (t == 5 ? 1 : 0)), at(t));
    ASSERT_TRUE(energy) << energy.error().message;
    const auto same = kept.energy.energy_of(0, at(t - 5 + (t == 5 ? 1 : 0)), at(t));
    EXPECT_EQ(energy->energy, same->energy);
    sum += energy->energy;
  }
  EXPECT_EQ(sum, kept.window(1, 90)->energy);
  EXPECT_FALSE(forgetful.window(1, 90));  // forgotten, and an error that says so
}

}  // namespace
}  // namespace jouleprof::analysis
