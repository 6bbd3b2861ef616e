#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using UnitState = UnitVerdict::State;
using ::testing::HasSubstr;

// The counter shows `factor` times what it counted.
void append_readings(const GpuSensors& gpu, const Truth& truth, double factor,
                     EnergyTimeline& timeline) {
  for (const auto& r : gpu.samples(truth, 0, truth.end())) timeline.append(r);
  for (auto r : counter_reads(gpu, truth)) {
    r.total =
        Energy::microjoules(std::llround(static_cast<double>(r.total.microjoules()) * factor));
    timeline.append(r);
  }
}

EnergyTimeline counted_timeline(const GpuSensors& gpu, const Truth& truth, double factor) {
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  append_readings(gpu, truth, factor, timeline);
  return timeline;
}

std::string texts_of_notes(EnergyTimeline& timeline) {
  std::string text;
  for (const auto& note : timeline.notes()) text += note.text + "\n";
  return text;
}

bool holds_truth(EnergyTimeline& timeline, const Truth& truth, double from, double to) {
  const auto m = timeline.energy(at(from), at(to));
  if (!m) return false;
  const Energy real = Energy::joules(truth.joules(from, to));
  return m->low() <= real && real <= m->high();
}

TEST(UnitCheck, AgreesWithTheUnitThatIsStated) {
  const Truth truth = mixed(1, 20);
  auto timeline = counted_timeline({}, truth, 1);
  EXPECT_EQ(timeline.unit().state, UnitState::kAgrees);
  EXPECT_THAT(timeline.unit().reason, HasSubstr("verified"));
  EXPECT_EQ(texts_of_notes(timeline), "");
}

// Each unit taken for each other one that is not nearly the same.
TEST(UnitCheck, FindsEachUnitThatIsNotTheStatedOne) {
  const double units[] = {1e-6, 1.0 / 65536, 1e-3};
  unsigned seed = 0;
  for (const double stated : units) {
    for (const double real : units) {
      if (stated == real) continue;
      GpuSensors gpu;
      gpu.seed = ++seed;
      const Truth truth = mixed(seed, 20);
      auto timeline = counted_timeline(gpu, truth, stated / real);
      EXPECT_EQ(timeline.unit().state, UnitState::kRescaled) << stated << " for " << real;
      EXPECT_NEAR(timeline.unit().factor / (real / stated), 1, 0.01);
      EXPECT_TRUE(holds_truth(timeline, truth, 2, 18)) << stated << " for " << real;
      EXPECT_EQ(timeline.method(), "fused");
      EXPECT_THAT(texts_of_notes(timeline), HasSubstr("counts in units of"));
    }
  }
}

TEST(UnitCheck, FindsItWithinSeconds) {
  Truth truth;
  for (int i = 0; i < 6; ++i) truth.hold(300 + 40 * (i % 2), 0.5);
  auto timeline = counted_timeline({}, truth, 1.0 / 65.536);
  EXPECT_EQ(timeline.unit().state, UnitState::kRescaled);
  EXPECT_TRUE(holds_truth(timeline, truth, 0.5, 2.5));
}

TEST(UnitCheck, DoesNotUseACounterOfNoKnownUnit) {
  const Truth truth = mixed(3, 30);
  for (const double factor : {0.2, 8.0}) {
    auto timeline = counted_timeline({}, truth, factor);
    EXPECT_EQ(timeline.unit().state, UnitState::kRefused) << factor;
    EXPECT_TRUE(holds_truth(timeline, truth, 2, 28));
    EXPECT_EQ(timeline.method(), "samples");
    EXPECT_THAT(texts_of_notes(timeline), HasSubstr("is not used"));
  }
}

TEST(UnitCheck, DoesNotJudgeAShortRun) {
  Truth truth;
  truth.hold(300, 0.8);
  truth.hold(350, 0.7);
  auto timeline = counted_timeline({}, truth, 1.0 / 65.536);
  EXPECT_EQ(timeline.unit().state, UnitState::kUnverified);
  EXPECT_THAT(unit_text(timeline.unit()), HasSubstr("not verified"));
}

TEST(UnitCheck, HasNoUnitForACounterThatStandsAtZero) {
  const Truth truth = mixed(4, 20);
  const GpuSensors gpu;
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  for (const auto& r : gpu.samples(truth, 0, truth.end())) timeline.append(r);
  for (auto r : gpu.reads(truth, 0.1, truth.end())) {
    r.total = {};
    timeline.append(r);
  }
  EXPECT_EQ(timeline.unit().state, UnitState::kUnverified);
  EXPECT_TRUE(holds_truth(timeline, truth, 2, 18));
  EXPECT_THAT(texts_of_notes(timeline), HasSubstr("did not change"));
}

TEST(UnitCheck, RefusesNoInnocentCounter) {
  const auto innocent = [](const GpuSensors& gpu, const Truth& truth, const std::string& what) {
    auto timeline = counted_timeline(gpu, truth, 1);
    const auto state = timeline.unit().state;
    EXPECT_TRUE(state == UnitState::kAgrees || state == UnitState::kUnverified)
        << what << ": " << timeline.unit().reason;
    EXPECT_TRUE(timeline.sensors().counter.has_value()) << what;
  };
  for (unsigned seed = 1; seed <= 12; ++seed) {
    GpuSensors gpu;
    gpu.seed = seed;
    innocent(gpu, mixed(seed, 15), "mixed");
    Truth idle;
    idle.hold(0.3 * seed, 15);
    innocent(gpu, idle, "idle");
    Truth bursts;
    for (int i = 0; i < 30; ++i) bursts.hold(30, 0.47), bursts.hold(700, 0.03);
    innocent(gpu, bursts, "bursts");
    // A sensor that sees a quarter of the time, at a load that is locked to it.
    GpuSensors polled = gpu;
    polled.sample_every = 0.1;
    polled.jitter = false;
    Truth locked;
    for (int i = 0; i < 200; ++i) {
      locked.hold(100, 0.004 * seed);
      locked.hold(700, 0.03);
      locked.hold(100, 0.07 - 0.004 * seed);
    }
    innocent(polled, locked, "locked");
    GpuSensors slow = gpu;
    slow.edge_every = 1;
    slow.phase = 0.37;
    innocent(slow, mixed(seed, 15), "renewed once a second");
    innocent(slow, bursts, "bursts, renewed once a second");
    slow.read_every = 2.5;
    innocent(slow, mixed(seed, 30), "read rarely");
  }
}

// As counted_timeline, of a board whose power is polled every 0.1 s, without a known window.
EnergyTimeline polled_timeline(const Truth& truth, double factor, double window, double noise) {
  GpuSensors gpu;
  gpu.sample_every = 0.1;
  gpu.jitter = false;
  gpu.noise = noise;
  model::Sensor power = gpu.ring();
  power.kind = model::SensorKind::kPowerInstant;
  power.traits.refresh.reset();
  power.traits.window.reset();
  if (window > 0) power.traits.window = duration_of(window);
  EnergyTimeline timeline({gpu.counter(), power});
  append_readings(gpu, truth, factor, timeline);
  return timeline;
}

struct Load {
  const char* name;
  Truth (*truth)(double seconds);
};
const Load kLoads[] = {
    {"constant",
     [](double seconds) {
       Truth truth;
       truth.hold(300, seconds);
       return truth;
     }},
    {"two levels",
     [](double seconds) {
       Truth truth;
       while (truth.end() < seconds) truth.hold(300, 1.0 / 6), truth.hold(310, 1.0 / 6);
       return truth;
     }},
    {"square",
     [](double seconds) {
       Truth truth;
       while (truth.end() < seconds) truth.hold(150, 0.37), truth.hold(500, 0.61);
       return truth;
     }},
    {"begins and ends",
     [](double seconds) {
       Truth truth;
       truth.hold(40, 0.2 * seconds);
       truth.hold(400, 0.6 * seconds);
       truth.hold(40, 0.2 * seconds);
       return truth;
     }},
};

// Whatever the sensor's window is, and whether its readings differ from one another or not.
TEST(UnitCheck, UsesNoCounterThatDiffersByAThirdFromItsPower) {
  for (const double seconds : {3.0, 5.0, 14.0}) {
    for (const double factor : {0.2, 0.5, 1.5, 3.0, 7.0, 20.0, 1000.0, 1 / 65.536}) {
      for (const Load& load : kLoads) {
        for (const double noise : {0.0, 0.01}) {
          const Truth truth = load.truth(seconds);
          auto sharp = counted_timeline({}, truth, factor);
          auto polled = polled_timeline(truth, factor, 0, noise);
          for (auto* timeline : {&sharp, &polled}) {
            SCOPED_TRACE(std::string(load.name) + " " + std::to_string(seconds) + " s x " +
                         std::to_string(factor) + (timeline == &sharp ? " sharp" : " polled") +
                         " noise " + std::to_string(noise));
            const auto state = timeline->unit().state;
            const bool is_known = factor == 1000 || factor < 0.1;
            EXPECT_EQ(state, is_known ? UnitState::kRescaled : UnitState::kRefused)
                << unit_text(timeline->unit());
            EXPECT_TRUE(holds_truth(*timeline, truth, 0.3, seconds - 0.3));
          }
        }
      }
    }
  }
}

TEST(UnitCheck, BelievesTheRightUnitOfTheSameBoards) {
  for (const double seconds : {3.0, 5.0, 14.0}) {
    for (const Load& load : kLoads) {
      for (const double window : {0.0, 0.025}) {
        for (const double noise : {0.0, 0.01}) {
          auto timeline = polled_timeline(load.truth(seconds), 1, window, noise);
          EXPECT_EQ(timeline.unit().state, UnitState::kAgrees)
              << load.name << " " << seconds << " " << unit_text(timeline.unit());
        }
      }
    }
  }
}

// Of a sensor that sees a quarter of the time: what a load at its own rate explains is no reason.
TEST(UnitCheck, DistinguishesAUnitFromALockedLoad) {
  const Truth truth = kLoads[0].truth(5);
  EXPECT_EQ(polled_timeline(truth, 3, 0.025, 0).unit().state, UnitState::kUnverified);
  EXPECT_EQ(polled_timeline(truth, 0.5, 0.025, 0).unit().state, UnitState::kUnverified);
  EXPECT_EQ(polled_timeline(truth, 0.2, 0.025, 0).unit().state, UnitState::kRefused);
  EXPECT_EQ(polled_timeline(truth, 9, 0.025, 0).unit().state, UnitState::kRefused);
  EXPECT_EQ(polled_timeline(kLoads[2].truth(14), 1.5, 0.025, 0).unit().state, UnitState::kRefused);
}

// Power that no longer changes while the board falls idle is a fault of the power sensor.
TEST(UnitCheck, DoesNotBlameTheCounterForAPowerSensorThatIsStuck) {
  const GpuSensors gpu;
  Truth truth;
  truth.hold(600, 1);
  truth.hold(40, 14);
  Truth shown;
  shown.hold(600, 15);
  EnergyTimeline timeline({gpu.counter(), gpu.ring()});
  GpuSensors quiet = gpu;
  quiet.noise = 0;
  for (const auto& r : quiet.samples(shown, 0, 15)) timeline.append(r);
  for (const auto& r : gpu.reads(truth, 0.1, 15)) timeline.append(r);
  EXPECT_TRUE(timeline.sensors().counter.has_value()) << timeline.unit().reason;
  EXPECT_NE(timeline.unit().state, UnitState::kRescaled) << timeline.unit().reason;
}

}  // namespace
}  // namespace jouleprof::analysis
