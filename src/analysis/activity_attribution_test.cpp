#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

std::size_t index_of(const model::ActivityRow& row) {
  return static_cast<std::size_t>(
      std::stoul(row.name.substr(row.name.find_first_of("0123456789"))));
}

// The errors of the kernels' energies, and how many intervals contain the truth.
struct Score {
  double all = 0;
  double error = 0;
  int covered = 0;

  Score(const model::ActivityProfile& p, const Synthesised& made) {
    for (const auto& row : p.by_kernel) {
      const double truth = made.joules[index_of(row)];
      const double apart = std::abs(row.energy->energy.joules() - truth);
      all += truth;
      error += apart;
      covered += apart <= row.energy->repeatability.joules();
    }
  }
};

TEST(Attribute, FindsTheEnergyOfEachKernel) {
  SyntheticRun run;
  run.kernels = various_kernels(12);
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  ASSERT_EQ(p.by_kernel.size(), 12u);
  for (const auto& row : p.by_kernel) {
    const double truth = made.joules[index_of(row)];
    EXPECT_NEAR(row.energy->energy.joules(), truth, 0.04 * truth) << row.name;
    EXPECT_LT(std::abs(row.energy->energy.joules() - truth), row.energy->repeatability.joules());
    EXPECT_NEAR(seconds(row.busy), made.busy[index_of(row)], 1e-6);
    EXPECT_TRUE(row.resolvable);
  }
  const Score score(p, made);
  EXPECT_LT(score.error, 0.015 * score.all);
  EXPECT_NEAR(p.idle_power->watts(), 120, 2);
  EXPECT_GT(p.explained, 0.98);
  EXPECT_LT(std::abs(p.unattributed.joules()), 0.01 * p.measured.energy.joules());
}

SyntheticRun short_bursts() {
  SyntheticRun run;
  run.kernels = various_kernels(10);
  run.shortest = 0.3e-3;
  run.longest = 6e-3;
  run.seconds = 60;
  return run;
}

TEST(Attribute, ShortBurstsAreFoundByTheCounter) {
  SyntheticRun run = short_bursts();
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  const Score score(p, made);
  EXPECT_LT(score.error, 0.03 * score.all);
  EXPECT_GE(score.covered, 9);
}

TEST(Attribute, FindsTheBoardsTimeConstant) {
  SyntheticRun run = short_bursts();
  run.sensors.rise = 0.0122;
  auto made = synthesise(run);
  for (auto& sensor : made.recording.sensors) {  // the value known for boards of its kind
    if (sensor.traits.rise) sensor.traits.rise = std::chrono::milliseconds{14};
  }
  const auto p = only_activity(made.recording);
  for (const auto& row : p.by_kernel) {
    const double truth = made.joules[index_of(row)];
    EXPECT_NEAR(row.energy->energy.joules(), truth, 0.08 * truth + 2) << row.name;
  }
  EXPECT_GE(Score(p, made).covered, 9);
}

TEST(Attribute, LayersAndPhasesHaveTheirKernelsEnergy) {
  SyntheticRun run;
  run.kernels = various_kernels(4);
  auto made = synthesise(run);
  auto& layers = made.recording.traces[0].layers;
  layers[2].parent = layers[3].parent = 1;
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  ASSERT_EQ(p.by_layer.size(), 4u);
  EXPECT_EQ(p.by_layer[3].parent, 1u);
  const Energy children = p.by_layer[2].energy->energy + p.by_layer[3].energy->energy;
  EXPECT_EQ(p.by_layer[1].inclusive->energy, p.by_layer[1].energy->energy + children);
  ASSERT_EQ(p.by_phase.size(), 1u);
  EXPECT_EQ(p.by_phase[0].name, "forward");
  EXPECT_EQ(p.by_phase[0].energy->energy, p.kernels);
  EXPECT_TRUE(p.by_range.empty());
}

TEST(Attribute, RangesInWhichNothingWasLaunchedHaveNoRow) {
  SyntheticRun run;
  run.kernels = various_kernels(2);
  run.seconds = 10;
  auto made = synthesise(run);
  model::Trace& trace = made.recording.traces[0];
  trace.ranges = {{"compile", model::kNone}, {"step", model::kNone}, {"pass", 0}, {"loss", 1}};
  trace.scopes[0].range = 3;
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  ASSERT_EQ(p.by_range.size(), 3u);
  EXPECT_EQ(p.by_range[0].name, "step");
  EXPECT_EQ(p.by_range[1].name, "loss");
  EXPECT_EQ(p.by_range[1].parent, 0u);
  EXPECT_EQ(p.by_range[2].name, "(outside of ranges)");
  EXPECT_EQ(p.by_range[0].inclusive->energy, p.by_range[1].energy->energy);
}

TEST(Attribute, ALayerOfCollinearKernelsIsResolvable) {
  SyntheticRun run;
  run.kernels = {{400, 20e-6, 1e-6}, {220, 20e-6, 1e-6}, {300, 10e-6, 1e-6}};
  run.together = true;
  run.wander = 0.02;
  auto made = synthesise(run);
  auto& layers = made.recording.traces[0].layers;
  layers[1].parent = layers[2].parent = 0;
  const auto p = only_activity(made.recording);
  EXPECT_TRUE(p.by_layer[0].resolvable);
  EXPECT_FALSE(p.by_layer[1].resolvable);
  EXPECT_EQ(p.by_layer[0].inclusive->energy, p.kernels);
}

TEST(Attribute, CallsAreThoseOfThePart) {
  SyntheticRun run;
  run.kernels = various_kernels(2);
  run.seconds = 10;
  auto made = synthesise(run);
  for (const auto& [calls, from, to] : {std::tuple{3U, 1.0, 5.0}, std::tuple{40U, 6.0, 9.0}}) {
    model::ActivityEncoder encoder;
    encoder.add(model::LayerEntry{0, model::Phase::kForward, calls, 0, 0});
    made.recording.traces[0].chunks.push_back(
        {model::ChunkKind::kLayers, model::kNone, at(from), at(to), encoder.take()});
  }
  made.recording.run.work_begin = at(0);
  made.recording.run.work_end = at(12);
  EXPECT_EQ(only_activity(made.recording).by_layer[0].count, 43u);
  const auto first = only_activity(made.recording, {std::nullopt, std::chrono::milliseconds{5500}});
  EXPECT_EQ(first.by_layer[0].count, 3u);
}

TEST(Attribute, CollinearKernelsHaveAnIdentifiableSum) {
  SyntheticRun run;
  run.kernels = {{400, 20e-6, 1e-6}, {220, 20e-6, 1e-6}, {300, 10e-6, 1e-6}};
  run.together = true;
  run.wander = 0.02;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  double truth = 0;
  for (const double j : made.joules) truth += j;
  for (const auto& row : p.by_kernel) {
    EXPECT_FALSE(row.resolvable) << row.name;
    EXPECT_FALSE(row.reason.empty());
    ASSERT_TRUE(row.group_energy);
    EXPECT_NEAR(row.group_energy->energy.joules(), truth, 0.03 * truth);
    EXPECT_LT(row.group_energy->repeatability.joules(), 0.08 * truth);
    EXPECT_LT(std::abs(row.energy->energy.joules() - made.joules[index_of(row)]),
              row.energy->repeatability.joules());
  }
}

TEST(Attribute, AtAPowerLimitKernelsHaveTheirEnergyThereWithAWarning) {
  SyntheticRun run;
  run.kernels = various_kernels(8);
  run.cap = 350;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  const Score score(p, made);
  EXPECT_LT(score.error, 0.03 * score.all);
  EXPECT_GE(score.covered, 7);
  ASSERT_FALSE(p.warnings.empty());
  EXPECT_NE(p.warnings[0].find("limits reduced the clocks"), std::string::npos);
}

TEST(Attribute, AtAPowerLimitClocksThatAreReadOftenLeaveTheTruthInside) {
  SyntheticRun run;
  run.kernels = {{500, 20e-6, 1e-6}, {180, 20e-6, 1e-6}, {330, 10e-6, 1e-6}, {260, 40e-6, 2e-6}};
  run.seconds = 12;
  run.cap = 350;
  run.reasons_every = 0.1;
  int inside = 0;
  for (run.seed = 1; run.seed <= 6; ++run.seed) {
    const auto made = synthesise(run);
    inside += Score(only_activity(made.recording), made).covered;
  }
  EXPECT_GE(inside, 23);  // of 24
}

// As at a power limit, which keeps power as it is while the clock changes.
TEST(Attribute, AClockThatPowerDoesNotFollowHardlyWidensTheIntervals) {
  SyntheticRun run;
  run.kernels = various_kernels(6);
  auto made = synthesise(run);
  const auto widths = [&] {
    double sum = 0;
    for (const auto& row : only_activity(made.recording).by_kernel)
      sum += row.energy->repeatability.joules() / row.energy->energy.joules();
    return sum;
  };
  const double without = widths();
  const model::SensorId clock{99};
  made.recording.sensors.push_back({clock,
                                    simulated::kGpu0,
                                    model::SensorKind::kGauge,
                                    std::string(model::gauge::kSmClock),
                                    {},
                                    {}});
  for (double t = 0; t < run.seconds; t += 0.1) {
    made.recording.readings.gauges.push_back(
        {clock, at(t), 1.8e9 * (1 + 0.08 * std::sin(t) + 0.02 * std::sin(91 * t))});
  }
  EXPECT_LT(widths(), 1.3 * without);
  EXPECT_GE(Score(only_activity(made.recording), made).covered, 5);
}

TEST(Attribute, OverlappingKernelsShareTheTime) {
  SyntheticRun run;
  run.kernels = various_kernels(8);
  run.overlapped = 0.5;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  ASSERT_EQ(p.by_kernel.size(), 8u);
  for (const auto& row : p.by_kernel) {
    const double truth = made.joules[index_of(row)];
    EXPECT_NEAR(row.energy->energy.joules(), truth, 0.05 * truth) << row.name;
    EXPECT_NEAR(seconds(row.busy), made.busy[index_of(row)], 1e-4);
  }
}

// Kernels that leave part of the GPU free draw more together than the mean of both.
TEST(Attribute, DifferentPowerWhileOverlappingIsFound) {
  SyntheticRun run;
  run.kernels = various_kernels(8);
  run.overlapped = 0.5;
  run.overlapped_watts = 1.5;
  auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  const Score score(p, made);
  EXPECT_LT(score.error, 0.03 * score.all);
  EXPECT_GE(score.covered, 7);
  ASSERT_EQ(p.warnings.size(), 1u);
  EXPECT_NE(p.warnings[0].find("launches overlapped"), std::string::npos) << p.warnings[0];
  for (const auto& row : p.by_kernel) {
    EXPECT_GT(*row.overlapped, 0.2 * row.busy) << row.name;
    EXPECT_LT(*row.overlapped, 0.8 * row.busy) << row.name;
  }
  for (const auto& row : p.by_layer) {
    EXPECT_GT(*row.overlapped, 0.2 * row.busy) << row.name;
  }

  // Older recordings have no overlapped times.
  std::erase_if(made.recording.traces[0].chunks, [](const auto& c) {
    return model::is_overlapped_bins(c.kind) || c.kind == model::ChunkKind::kOverlappedScopes;
  });
  const Score unknown(only_activity(made.recording), made);
  EXPECT_GT(unknown.error, 3 * score.error);
}

TEST(Attribute, APartOfTheRunHasItsOwnEnergy) {
  SyntheticRun run;
  run.kernels = various_kernels(6);
  auto made = synthesise(run);
  made.recording.run.work_begin = at(0.5);
  made.recording.run.work_end = at(31);
  const auto whole = only_activity(made.recording);
  const auto first = only_activity(made.recording, {std::nullopt, std::chrono::seconds{15}});
  const auto rest = only_activity(made.recording, {std::chrono::seconds{15}, std::nullopt});
  expect_conserved(first);
  EXPECT_NEAR((first.kernels + rest.kernels).joules(), whole.kernels.joules(),
              0.02 * whole.kernels.joules());
  EXPECT_LT(first.launches, whole.launches);
}

TEST(Attribute, ADeviceWithoutActivityHasNoProfile) {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 3;
  auto made = synthesise(run);
  made.recording.traces[0].devices[0].uuid = "GPU-another";
  const auto profiles = activity_of(made.recording);
  ASSERT_TRUE(profiles);
  EXPECT_TRUE(profiles->empty());
}

TEST(Attribute, DamagedActivityIsAnError) {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 3;
  auto made = synthesise(run);
  made.recording.traces[0].chunks[0].bytes += '\xff';
  const auto broken = activity_of(made.recording);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Errc::kCorrupt);
  made = synthesise(run);
  made.recording.traces[0].classes.resize(1);
  EXPECT_FALSE(activity_of(made.recording));
}

// A process without a trace uses half of the board from `begin` to `end`, with `watts`; the driver
// lists both processes once a second, and their utilisation every third time.
void add_untraced(Synthesised& run, double begin, double end, double watts) {
  auto& r = run.recording;
  const auto used = [&](double t) { return std::clamp(t - begin, 0.0, end - begin); };
  for (auto& p : r.readings.powers) {
    const double t = seconds(p.at - at(0));
    p.power = p.power + Power::watts(watts) * ((used(t) - used(t - 0.02)) / 0.02);
  }
  for (auto& c : r.readings.counters)
    c.total += Energy::joules(watts * used(seconds(c.before - at(0)) - 0.05));
  double busy = 0;
  for (const double b : run.busy) busy += b / 30;
  for (const std::uint32_t id : {0U, 1U}) {
    model::Process process;
    process.id = model::ProcessId{id};
    process.pid = id == 0 ? 7 : 90;
    process.start = at(id == 0 ? 0 : begin);
    if (id == 1 && end < 31) process.end = at(end);
    process.in_tree = id == 0;
    r.processes.push_back(process);
  }
  double asked = 0;
  for (double t = 0.5; t < 32; t += 1) {
    const bool is_shared = t > begin && t < end;
    const bool asks = t - asked >= 3;
    const auto use = [&](double value) {
      return asks && is_shared ? std::optional(std::round(100 * value) / 100) : std::nullopt;
    };
    const double foreign = 0.5 * (used(t) - used(asked)) / (t - asked);
    r.process_readings.gpu_processes.push_back(
        {model::ProcessId{0}, simulated::kGpu0, at(t), use(busy), {}});
    if (is_shared) {
      r.process_readings.gpu_processes.push_back(
          {model::ProcessId{1}, simulated::kGpu0, at(t), use(foreign), {}});
    }
    if (asks) asked = t;
  }
}

TEST(ActivityNextToUntraced, TheCommandAndItsKernelsHaveTheirOwnEnergy) {
  for (const auto& [begin, end] : {std::pair(8.0, 20.0), std::pair(0.3, 40.0)}) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(fmt::format("from {} s, seed {}", begin, seed));
      SyntheticRun made;
      made.kernels = simulated::various_kernels(4, seed);
      made.seed = made.sensors.seed = seed;
      auto run = simulated::synthesise(made);
      add_untraced(run, begin, end, 150);
      auto& r = run.recording;
      r.run.source = "run";
      r.run.command = {"traced"};
      r.run.work_begin = at(0.2);
      r.run.work_end = at(31.9);
      auto& levels = r.domains[0].known_levels;
      levels.rest = model::KnownLevel{Power::watts(70), Power::watts(1), {}, {}};
      levels.held = model::KnownLevel{Power::watts(120), Power::watts(1), {}, {}};
      const double shared = std::min(end, 31.9) - std::max(begin, 0.2);
      double truth = 50 * (31.7 - shared / 2);  // what it holds
      for (const double joules : run.joules) truth += joules;
      const analysis::Run analysed(r);
      const auto& profile = analysed.profile();
      ASSERT_TRUE(profile) << profile.error().message;
      const auto& command = profile->domains[0].command;
      ASSERT_TRUE(command);
      EXPECT_LE(command->low().joules(), truth);
      EXPECT_GE(command->high().joules(), truth);
      EXPECT_NEAR(command->energy.energy.joules() / truth, 1, begin > 1 ? 0.03 : 0.2);
      const auto& activity = analysed.activity();
      ASSERT_TRUE(activity);
      for (const auto& row : activity->front().by_kernel) {
        ASSERT_TRUE(row.energy && row.kernel);
        const double joules = run.joules[std::stoul(row.kernel->name.substr(7))];
        EXPECT_NEAR(row.energy->energy.joules(), joules, row.energy->error.joules())
            << row.kernel->name;
      }
    }
  }
}

}  // namespace
}  // namespace jouleprof::analysis
