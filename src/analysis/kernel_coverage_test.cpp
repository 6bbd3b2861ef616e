// A small part of what tests/coverage/kernels.cpp prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "analysis/analysed_test.h"
#include "analysis/kernel_loads_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

std::size_t kernel_of(const model::ActivityRow& row) {
  return static_cast<std::size_t>(std::stoul(row.name.substr(7)));
}

// Inside, or not resolvable with an upper bound that holds.
model::ActivityProfile expect_covered(const KernelLoad& load) {
  const auto made = synthesise(load);
  const auto p = only_activity(made.recording);
  for (const auto& row : p.by_kernel) {
    const double truth = made.joules[kernel_of(row)];
    const double joules = row.energy->energy.joules();
    const double half = row.energy->repeatability.joules();
    if (row.resolvable) {
      EXPECT_NEAR(joules, truth, half) << row.name;
    }
    EXPECT_LE(truth, joules + half) << row.name;
  }
  double all = 0;
  for (const double j : made.joules) all += j;
  const auto& sum = *p.by_phase.front().inclusive;
  EXPECT_NEAR(p.kernels.joules(), all, sum.repeatability.joules());
  return p;
}

KernelLoad loop_of(double period, unsigned seed) {
  KernelLoad load = fixed_rate({.period = period, .seconds = 12}, seed);
  load.supposed_lag = load.sensors.lag + 1e-3;
  return load;
}

TEST(KernelCoverage, ALoopThatIsLockedToTheSampler) {
  const auto p = expect_covered(loop_of(0.020, 1));
  // The counter adds up samples of one phase: the measured energy says that it may be wrong.
  const auto off = std::abs(p.unattributed.joules());
  EXPECT_GT(p.measured.repeatability.joules(), off);
  EXPECT_GT(p.measured.repeatability.joules(), 0.1 * p.kernels.joules());
  EXPECT_TRUE(std::any_of(p.warnings.begin(), p.warnings.end(), [](const std::string& text) {
    return text.find("repeats every 20.0 ms") != std::string::npos;
  }));
  expect_covered(loop_of(0.040, 2));
}

// The samples hardly show which of two kernels draws how much, and so not what they miss: of
// kernels that fill the period, that anything is missed.
TEST(KernelCoverage, WhatSamplesMissOfALoopWhoseKernelsAreNotSeparated) {
  for (const double share : {0.4, 0.5}) {
    int within = 0;
    for (unsigned seed = 1; seed <= 10; ++seed) {
      FixedRate loop{.shares = {share, share}, .seconds = 8, .phase = 2e-3 * seed};
      auto run = synthesise(fixed_rate(loop, seed));
      run.recording.sensors.erase(run.recording.sensors.begin());
      run.recording.readings.counters.clear();
      const auto p = only_activity(run.recording);
      const double truth = run.joules[0] + run.joules[1] + 120 * seconds(p.length());
      within += std::abs(p.measured.energy.joules() - truth) <= p.measured.repeatability.joules();
    }
    EXPECT_GE(within, 8) << share;
  }
}

TEST(KernelCoverage, ALoopThatIsNot) {
  const auto p = expect_covered(loop_of(1.0 / 30, 3));
  EXPECT_LT(p.measured.repeatability.joules(), 0.05 * p.kernels.joules());
  EXPECT_TRUE(p.by_kernel.front().resolvable);
}

// The sensor sees five phases of it again and again: some other time of the samples fits them as
// well, with the watts of the kernels exchanged.
TEST(KernelCoverage, ALoopThatShowsFivePhases) {
  for (const unsigned seed : {4U, 10U}) {
    FixedRate loop{.period = 0.025, .shares = {0.1, 0.3}, .jitter = 2e-4};
    loop.phase = 0.02 * 0.137 * seed;
    KernelLoad load = fixed_rate(loop, seed);
    load.sensors.sums_phase = 0.003 + 1e-3 * seed;
    expect_covered(load);
  }
}

TEST(KernelCoverage, KernelTimesThatAreLate) {
  KernelLoad load = bursts({.seconds = 12}, 1);
  load.late = 0.03;
  const auto p = expect_covered(load);
  for (const auto& row : p.by_kernel) EXPECT_TRUE(row.resolvable) << row.name;
  EXPECT_GT(p.explained, 0.9);
}

TEST(KernelCoverage, IdlePowerThatDrifts) {
  KernelLoad load = bursts({.seconds = 24}, 2);
  load.idle = [](double t) { return 120 + 20 * std::sin(t / 4); };
  expect_covered(load);
}

TEST(KernelCoverage, AContextThatHoldsMoreThanTheBoardAtRest) {
  KernelLoad load = bursts({.seconds = 15, .pause_share = 0}, 3);
  const double end = load.end;
  load.idle = [=](double t) { return t > 0.95 && t < end + 0.05 ? 130.0 : 100.0; };
  load.states_idle = true;
  expect_covered(load);
}

// AMD's table in /sys: a counter that the driver renews each millisecond and a power of that
// moment, both read 10 times a second.
TEST(KernelCoverage, AnInstinctsCounter) {
  int resolved = 0;
  int inside = 0;
  int within = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    KernelLoad load = bursts({.kernels = 5}, seed);
    load.sensors = {.seed = seed,
                    .window = 0.001,
                    .lag = 0,
                    .sample_every = 0.1,
                    .jitter = false,
                    .edge_every = 0.001,
                    .earliest_visible = 0,
                    .latest_visible = 0.001};
    const auto made = synthesise(load);
    for (const auto& row : only_activity(made.recording).by_kernel) {
      const double truth = made.joules[kernel_of(row)];
      const double off = std::abs(row.energy->energy.joules() - truth);
      if (!row.resolvable) continue;
      ++resolved;
      inside += off <= row.energy->repeatability.joules();
      within += off <= 0.02 * truth;
    }
  }
  EXPECT_EQ(resolved, 40);
  EXPECT_GE(inside, 38);  // 95 %
  EXPECT_GE(within, 38);
}

TEST(KernelCoverage, LaunchesThatWereDropped) {
  expect_covered(bursts({.seconds = 15, .missing = 0.1}, 4));
}

TEST(KernelCoverage, LaunchesThatWereLostWithoutACount) {
  for (const double missing : {0.1, 0.3}) {
    KernelLoad load = bursts({.seconds = 15, .missing = missing}, 4);
    load.counts_lost = false;
    const auto p = expect_covered(load);
    EXPECT_TRUE(std::any_of(p.warnings.begin(), p.warnings.end(), [](const std::string& text) {
      return text.find("launches without a record") != std::string::npos;
    }));
  }
  for (const auto& text : expect_covered(bursts({.seconds = 15}, 4)).warnings) {
    EXPECT_EQ(text.find("launches without a record"), std::string::npos) << text;
  }
}

// `seen`: what the driver's utilisation has of each second of work.
model::ActivityProfile with_utilisation(const KernelLoad& load, double seen) {
  auto made = synthesise(load);
  made.recording.sensors.push_back({model::SensorId{30},
                                    kGpu0,
                                    model::SensorKind::kGauge,
                                    std::string(model::gauge::kGpuUtilisation),
                                    {},
                                    {}});
  for (double t = 0.5; t < load.end; t += 1) {
    made.recording.readings.gauges.push_back({model::SensorId{30}, at(t), t > 1 ? seen : 0.0});
  }
  return only_activity(made.recording);
}

// Kernels that kernels launch: the driver saw what the records lack.
TEST(KernelCoverage, UtilisationContradictsRecords) {
  const auto warns = [](const model::ActivityProfile& p) {
    return std::any_of(p.warnings.begin(), p.warnings.end(), [](const std::string& text) {
      return text.find("by the driver's utilisation") != std::string::npos;
    });
  };
  KernelLoad load = bursts({.seconds = 12, .missing = 0.6}, 4);
  load.counts_lost = false;
  const auto missing = with_utilisation(load, 0.98);
  EXPECT_TRUE(warns(missing));
  EXPECT_NEAR(seconds(missing.unrecorded), 0.6 * 12, 1.0);
  const auto complete = with_utilisation(bursts({.seconds = 12}, 4), 0.98);
  EXPECT_FALSE(warns(complete));
  EXPECT_EQ(complete.unrecorded, Duration{});
  // It counts the pauses between short launches as use.
  KernelLoad tiny;
  tiny.watts = {300};
  for (double t = 1; t < 5; t += 8e-6) tiny.launch(t, 4e-6, 0);
  EXPECT_FALSE(warns(with_utilisation(tiny, 0.9)));
}

TEST(KernelCoverage, ShortKernelsInAlternation) { expect_covered(alternating(2, 0.3e-3, 10, 1)); }

// Bins hold three or four of them each, in an order that they don't say.
TEST(KernelCoverage, ShortKernelsInTurn) {
  for (const unsigned seed : {3U, 6U}) expect_covered(alternating(6, 0.3e-3, 30, seed));
}

TEST(KernelCoverage, MoreSignaturesThanEarlierVersionsCouldCarry) {
  const auto p = expect_covered(many_signatures(200, 60, 1));
  std::size_t resolved = 0;
  for (const auto& row : p.by_kernel) resolved += row.resolvable ? 1 : 0;
  EXPECT_GT(resolved, 100u);
}

// One of 2 W among others of hundreds: the mean of all would be wrong by a factor.
TEST(KernelCoverage, AKernelTooShortForAPowerOfItsOwnIsNotResolvable) {
  KernelLoad load = bursts({.kernels = 3, .seconds = 12}, 5);
  load.watts.push_back(2);
  load.launch(load.end + 0.01, 1e-4, 3);
  const auto p = expect_covered(load);
  for (const auto& row : p.by_kernel) {
    if (kernel_of(row) != 3) continue;
    EXPECT_FALSE(row.resolvable);
    EXPECT_NE(row.reason.find("too short"), std::string::npos);
  }
}

TEST(KernelCoverage, AFitThatExplainsLittleResolvesNothing) {
  KernelLoad load = bursts({.seconds = 12}, 6);
  // The board did something else at other times.
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (auto& watts : load.watts) watts = 1;
  for (double t = 1; t < load.end; t += 0.3) {
    load.others.push_back({t, t + 0.3 * uniform(random), 600});
  }
  const auto made = synthesise(load);
  const auto p = only_activity(made.recording);
  EXPECT_LT(p.explained, 0.5);
  for (const auto& row : p.by_kernel) {
    EXPECT_FALSE(row.resolvable);
    EXPECT_NE(row.reason.find("does not explain"), std::string::npos) << row.reason;
  }
}

}  // namespace
}  // namespace jouleprof::analysis
