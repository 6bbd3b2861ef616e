#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/live/live_feed_test.h"
#include "analysis/live/window_totals.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

constexpr std::uint32_t kBurst = 7;

// Windows on a simulated H200, whose readings come while they run.
struct Program {
  explicit Program(unsigned seed) : random(seed) {
    gpu.seed = seed;
    gpu.rise = 0.030;
    power.hold(120, 2);
  }
  void window(double watts, double length) {
    const double begin = power.end();
    power.hold(watts, length);
    windows.push_back({begin, power.end()});
    joules += watts * length;
  }
  void pause(double from, double to) {
    power.hold(120, std::uniform_real_distribution<double>(from, to)(random));
  }
  Result<model::Measurement> total() {
    power.hold(120, 8);
    Live live(power, 10min, gpu);
    std::size_t next = 0;
    for (double t = 1; t < power.end(); t += 1) {
      for (; next < windows.size() && windows[next].end <= t; ++next) {
        live.energy.add(kBurst, at(windows[next].begin), at(windows[next].end));
      }
      live.until(t);
    }
    const auto total = live.energy.total(kBurst);
    EXPECT_EQ(total->count, total->resolved_count);
    return total->energies[0];
  }

  struct Span {
    double begin = 0;
    double end = 0;
  };
  std::mt19937 random;
  GpuSensors gpu;
  Truth power;
  std::vector<Span> windows;
  double joules = 0;  // of the windows
};

bool is_common(const model::Measurement& m) {
  return m.method == "regression on the windows' edges";
}

// Over three minutes and so over several blocks.
TEST(RepeatedTotals, BurstsHaveTheTrueMeanWhileTheProgramRuns) {
  unsigned covered = 0;
  double bias = 0;
  constexpr unsigned kPrograms = 3;
  for (unsigned seed = 1; seed <= kPrograms; ++seed) {
    Program p(seed);
    while (p.power.end() < 190) {
      p.window(500, 0.005);
      p.pause(0.02, 0.12);
    }
    const auto total = p.total();
    ASSERT_TRUE(total) << total.error().message;
    EXPECT_TRUE(is_common(*total)) << total->method;
    const double error = total->energy.joules() - p.joules;
    bias += error / p.joules / kPrograms;
    covered += std::abs(error) <= total->repeatability.joules() ? 1 : 0;
    EXPECT_LT(total->repeatability.joules(), 0.06 * p.joules);
  }
  EXPECT_LT(std::abs(bias), 0.02);
  EXPECT_GE(covered, kPrograms - 1);
}

TEST(RepeatedTotals, AFirstAnswerNeedsNoEndedBlock) {
  Program p(1);
  while (p.power.end() < 20) {
    p.window(500, 0.005);
    p.pause(0.02, 0.12);
  }
  const auto total = p.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(is_common(*total));
  EXPECT_NEAR(total->energy.joules(), p.joules, total->repeatability.joules());
}

// Nothing is added twice or left out: in the second minute there are bursts of another power.
TEST(RepeatedTotals, EachBlockCountsItsOwnWindows) {
  Program p(2);
  for (double watts : {300.0, 600.0, 400.0}) {
    const double end = p.power.end() + 61;
    while (p.power.end() < end) {
      p.window(watts, 0.010);
      p.pause(0.02, 0.12);
    }
  }
  const auto total = p.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(is_common(*total));
  EXPECT_NEAR(total->energy.joules(), p.joules, 0.04 * p.joules);
}

TEST(RepeatedTotals, AfterAPauseItGoesOn) {
  Program p(3);
  for (int part = 0; part < 2; ++part) {
    const double end = p.power.end() + 40;
    while (p.power.end() < end) {
      p.window(500, 0.005);
      p.pause(0.02, 0.12);
    }
    if (part == 0) p.power.hold(120, 400);
  }
  const auto total = p.total();
  ASSERT_TRUE(total);
  EXPECT_TRUE(is_common(*total));
  EXPECT_NEAR(total->energy.joules(), p.joules, 0.05 * p.joules);
}

TEST(RepeatedTotals, LongFewAndTooManyWindowsAreAddedSingly) {
  for (const double length : {1.1, 1.5}) {
    Program p(1);
    while (p.power.end() < 50) {
      p.window(500, length);
      p.pause(0.02, 0.12);
    }
    const auto total = p.total();
    ASSERT_TRUE(total);
    EXPECT_FALSE(is_common(*total)) << length;
  }
  Program few(1);
  for (int i = 0; i < 15; ++i) {
    few.window(500, 0.01);
    few.pause(0.5, 1);
  }
  EXPECT_FALSE(is_common(*few.total()));
  Live many(course([](double) { return 250.0; }, 50));
  for (int i = 0; i < 51'000; ++i) {
    const double begin = 2 + i * 0.0008;
    many.energy.add(kBurst, at(begin), at(begin + 0.0004));
  }
  many.until(50);
  EXPECT_FALSE(is_common(*many.energy.total(kBurst)->energies[0]));
}

}  // namespace
}  // namespace jouleprof::analysis
