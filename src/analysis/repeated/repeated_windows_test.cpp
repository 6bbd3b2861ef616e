#include "analysis/repeated/repeated_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <vector>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

// Windows on a simulated H200: its lag, its samples, its counter.
struct Program {
  explicit Program(unsigned seed) : random(seed) {
    gpu.seed = seed;
    gpu.rise = 0.030;
    power.hold(120, 2);
  }

  void window(const char* name, double watts, double length) {
    const double begin = power.end();
    power.hold(watts, length);
    add(name, begin, power.end());
  }
  void add(const char* name, double begin, double end) {
    recording.windows.push_back({name, at(begin), at(end), 1, 1, false});
  }
  void pause(double from, double to, double watts = 120) {
    power.hold(watts, std::uniform_real_distribution<double>(from, to)(random));
  }

  struct Sums {
    double true_joules = 0;
    std::optional<model::Measurement> sum;
    double direct = 0;  // of the single windows' energies
  };
  Sums sums(const char* name) {
    if (!timeline) {
      power.hold(120, 2);
      timeline.emplace(fused(gpu, power));
      for (const auto& w : recording.windows) {
        timeline->mark(w.begin);
        timeline->mark(w.end);
      }
      fitted = RepeatedWindows::fit(recording.windows, *timeline);
    }
    Sums out;
    std::vector<const model::Window*> windows;
    for (const auto& w : recording.windows) {
      if (w.name != name) continue;
      windows.push_back(&w);
      out.true_joules += power.joules(seconds(w.begin - kEpoch), seconds(w.end - kEpoch));
      out.direct += timeline->energy(w.begin, w.end)->energy.joules();
    }
    if (fitted) out.sum = fitted->sum(windows);
    return out;
  }

  std::mt19937 random;
  GpuSensors gpu;
  Truth power;
  model::Recording recording;
  std::optional<EnergyTimeline> timeline;
  std::optional<RepeatedWindows> fitted;
};

// Over simulated programs.
struct Score {
  double bias = 0;         // mean relative error of the sum
  double covered = 0;      // share of intervals that hold the truth
  double width = 0;        // mean relative half-width
  double direct_bias = 0;  // of the sum of single windows
  unsigned absent = 0;
};

Score score(const char* name, const std::function<void(Program&)>& run) {
  constexpr unsigned kPrograms = 12;
  Score out;
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    Program program(seed);
    run(program);
    const auto sums = program.sums(name);
    if (!sums.sum) {
      ++out.absent;
      continue;
    }
    const double error = sums.sum->energy.joules() - sums.true_joules;
    const double half_width = sums.sum->repeatability.joules();
    out.bias += error / sums.true_joules / kPrograms;
    out.covered += std::abs(error) <= half_width ? 1.0 / kPrograms : 0;
    out.width += half_width / sums.true_joules / kPrograms;
    out.direct_bias += (sums.direct - sums.true_joules) / sums.true_joules / kPrograms;
  }
  return out;
}

struct Burst {
  double length;       // seconds
  double bias, width;  // the greatest allowed
};

class BurstsApart : public testing::TestWithParam<Burst> {};

TEST_P(BurstsApart, HaveTheTrueMean) {
  const Score s = score("burst", [&](Program& p) {
    for (int i = 0; i < 100; ++i) {
      p.window("burst", 500, GetParam().length);
      p.pause(0.02, 0.12);
    }
  });
  EXPECT_EQ(s.absent, 0u);
  EXPECT_LT(std::abs(s.bias), GetParam().bias);
  EXPECT_GE(s.covered, 0.9);
  EXPECT_LT(s.width, GetParam().width);
  if (GetParam().length < 0.02) {
    EXPECT_LT(s.direct_bias, -0.3) << "single windows are as good";
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, BurstsApart,
                         testing::Values(Burst{0.001, 0.03, 0.15}, Burst{0.002, 0.03, 0.09},
                                         Burst{0.005, 0.02, 0.06}, Burst{0.010, 0.02, 0.05},
                                         Burst{0.050, 0.01, 0.04}));

TEST(RepeatedWindows, SeparatePhasesOfAStep) {
  const auto run = [&](Program& p) {
    for (int i = 0; i < 200; ++i) {
      p.window("forward", 450, 0.008);
      p.window("backward", 620, 0.016);
      p.pause(0.001, 0.004);
    }
  };
  for (const char* name : {"forward", "backward"}) {
    const Score s = score(name, run);
    EXPECT_EQ(s.absent, 0u) << name;
    EXPECT_LT(std::abs(s.bias), 0.025) << name;
    EXPECT_GE(s.covered, 0.9) << name;
    EXPECT_GT(std::abs(s.direct_bias), 0.05) << name << ": single windows are as good";
  }
}

// A RAPL counter is renewed each millisecond, and read every 100 ms, or every 10 ms for short
// windows.
struct Reads {
  double every;
  double late;   // each by up to so much, in seconds
  double scale;  // of 6, 20, 40 and 10 ms
  double vary;   // of their lengths
  // Whether it sees so much that the longest phase is known.
  bool sees_all = true;
};
void PrintTo(const Reads& r, std::ostream* out) {
  *out << "every " << r.every << " late " << r.late << " scale " << r.scale << " vary " << r.vary;
}

class PhasesOnACounter : public testing::TestWithParam<Reads> {};

TEST_P(PhasesOnACounter, HaveTheirTruth) {
  const Reads& reads = GetParam();
  constexpr std::array kNames{"data", "forward", "backward", "optimizer"};
  constexpr std::array kWatts{60.0, 120.0, 150.0, 90.0};
  constexpr std::array kSeconds{0.006, 0.020, 0.040, 0.010};
  constexpr int kSeeds = 8;
  std::array<int, 4> missed{};
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    Truth power;
    power.hold(40, 2);
    model::Recording recording;
    std::array<double, 4> truth{};
    while (power.end() < 32) {
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        const double begin = power.end();
        const double length =
            kSeconds[i] * reads.scale * std::max(0.3, 1 + reads.vary * normal(random));
        power.hold(0.8 * kWatts[i], 0.1 * length);
        power.hold(kWatts[i] * (1 + 0.02 * normal(random)), 0.9 * length);
        truth[i] += power.joules(begin, power.end());
        recording.windows.push_back({kNames[i], at(begin), at(power.end()), 1, 1, false});
      }
    }
    power.hold(40, 2);
    model::Sensor rapl{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
    rapl.traits.refresh = 1ms;
    EnergyTimeline timeline({.counter = rapl, .power = {}});
    for (double t = 0.01 * uniform(random); t < power.end();
         t += reads.every + reads.late * uniform(random)) {
      const double renewed = std::floor(1000 * t) / 1000;
      timeline.append(model::CounterReading{kCounter, at(t), at(t + 2e-5),
                                            Energy::joules(1000 + power.joules(renewed))});
    }
    const auto fitted = RepeatedWindows::fit(recording.windows, timeline);
    ASSERT_TRUE(fitted);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      std::vector<const model::Window*> of_name;
      for (const auto& w : recording.windows) {
        if (w.name == kNames[i]) of_name.push_back(&w);
      }
      const auto sum = fitted->sum(of_name);
      if (reads.sees_all && i == 2) {
        ASSERT_TRUE(sum) << kNames[i];
        EXPECT_LT(sum->repeatability.joules() / truth[i], 0.25) << kNames[i];
      }
      if (!sum) continue;
      missed[i] += std::abs(sum->energy.joules() - truth[i]) > sum->repeatability.joules();
    }
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) EXPECT_LE(missed[i], 1) << kNames[i];
}

// The last two keep step with the reads, or the reads with the renewals.
INSTANTIATE_TEST_SUITE_P(Reads, PhasesOnACounter,
                         testing::Values(Reads{0.010, 1e-4, 1, 0.03}, Reads{0.100, 2e-3, 1, 0.03},
                                         Reads{0.100, 3e-3, 1 / 0.76, 0, false},
                                         Reads{0.010, 0, 0.5, 3e-3}));

TEST(RepeatedWindows, NestedWindowsCountInBoth) {
  const auto run = [&](Program& p) {
    for (int i = 0; i < 100; ++i) {
      const double begin = p.power.end();
      p.window("inner", 600, 0.006);
      p.power.hold(250, 0.010);
      p.add("outer", begin, p.power.end());
      p.pause(0.02, 0.12);
    }
  };
  for (const char* name : {"inner", "outer"}) {
    const Score s = score(name, run);
    EXPECT_EQ(s.absent, 0u) << name;
    EXPECT_LT(std::abs(s.bias), 0.03) << name;
    EXPECT_GE(s.covered, 0.9) << name;
  }
}

// 4 ms at 300 W, with 10 to 20 ms at 650 W after it: what the sensors see is mostly the latter.
TEST(RepeatedWindows, WorkNextToAWindowIsNotTheWindows) {
  const Score s = score("small", [&](Program& p) {
    for (int i = 0; i < 150; ++i) {
      p.window("small", 300, 0.004);
      p.pause(0.010, 0.020, 650);
      p.pause(0.05, 0.15);
    }
  });
  EXPECT_EQ(s.absent, 12u);
}

// A host that is late: one of five windows begins only after a part of its work, or all of it.
TEST(RepeatedWindows, WorkThatBeginsBeforeItsWindowIsNotTakenForAnothers) {
  for (const double period : {0.070, 0.0713, 0.0931}) {
    const Score s = score("burst", [&](Program& p) {
      std::uniform_real_distribution<double> uniform(0, 1);
      for (int i = 0; i < 300; ++i) {
        const double begin = p.power.end();
        p.power.hold(500, 0.005);
        p.power.hold(120, period - 0.005);
        const double late = uniform(p.random) < 0.2 ? 0.012 * uniform(p.random) : 0;
        p.add("burst", begin + late, begin + std::max(0.005, late + 0.0005));
      }
    });
    EXPECT_GE(s.covered + s.absent / 12.0, 0.9) << period;
  }
}

TEST(RepeatedWindows, PeriodicBurstsHaveTheTrueMean) {
  for (const double period : {0.070, 0.0713}) {
    const Score s = score("burst", [&](Program& p) {
      for (int i = 0; i < 300; ++i) {
        p.window("burst", 500, 0.005);
        p.pause(period - 0.005, period - 0.005);
      }
    });
    EXPECT_EQ(s.absent, 0u) << period;
    EXPECT_LT(std::abs(s.bias), 0.02) << period;
    EXPECT_GE(s.covered, 0.9) << period;
  }
}

TEST(RepeatedWindows, PowerMayDrift) {
  const Score s = score("burst", [&](Program& p) {
    double level = 1;  // up to 1.15
    for (int i = 0; i < 300; ++i) {
      p.window("burst", 500 * level, 0.010);
      p.pause(0.02, 0.06, 120 * level);
      level += 0.0005;
    }
  });
  EXPECT_EQ(s.absent, 0u);
  EXPECT_LT(std::abs(s.bias), 0.02);
  EXPECT_GE(s.covered, 0.9);
}

TEST(RepeatedWindows, FewOrLongWindowsHaveNone) {
  Program few(1);
  for (int i = 0; i < 19; ++i) {
    few.window("burst", 500, 0.010);
    few.pause(0.02, 0.12);
  }
  EXPECT_FALSE(few.sums("burst").sum);
  Program longer(1);
  for (int i = 0; i < 30; ++i) {
    longer.window("burst", 500, 1.1);
    longer.pause(0.02, 0.12);
  }
  EXPECT_FALSE(longer.sums("burst").sum);
}

TEST(WindowStates, TimesAddUp) {
  Program p(1);
  for (int i = 0; i < 30; ++i) {
    const double begin = p.power.end();
    p.window("inner", 500, 0.005);
    p.power.hold(200, 0.005);
    p.add("outer", begin, p.power.end());
    p.pause(0.1, 0.1);
  }
  const auto names = short_window_names(p.recording.windows);
  const auto states = window_states(p.recording.windows, names);
  ASSERT_EQ(states.table.classes.size(), 3u);  // outside, inner and outer, outer
  EXPECT_NEAR(states.table.classes[1].busy, 30 * 0.005, 1e-6);
  EXPECT_NEAR(states.table.classes[2].busy, 30 * 0.005, 1e-6);
  std::vector<double> times(states.entries(), 0.0);
  states.add_time(states.first, states.last, times);
  EXPECT_NEAR(times[0], 29 * 0.1, 1e-5);
  EXPECT_NEAR(times[1] + times[2], 30 * 0.010, 1e-5);
}

}  // namespace
}  // namespace jouleprof::analysis
