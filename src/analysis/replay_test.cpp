// Isolated re-runs after the program: they separate collinear kernels, and are in no figure of the
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "analysis/activity/replay_time.h"
#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

SyntheticRun repeated_model() {
  SyntheticRun run;
  run.kernels = {{400, 20e-6, 1e-6}, {180, 20e-6, 1e-6}, {290, 10e-6, 1e-6}};
  run.together = true;
  run.wander = 0.02;
  run.seconds = 20;
  return run;
}

const model::ActivityRow& row(const model::ActivityProfile& p, std::string_view name) {
  for (const auto& r : p.by_kernel) {
    if (r.name == name) return r;
  }
  ADD_FAILURE() << name;
  return p.by_kernel.front();
}

// Each kernel within its interval.
void expect_resolved(const model::ActivityProfile& p, const Synthesised& made) {
  for (std::size_t k = 0; k < made.joules.size(); ++k) {
    const auto& known = row(p, "kernel " + std::to_string(k));
    EXPECT_TRUE(known.resolvable) << known.name;
    EXPECT_LT(std::abs(known.energy->energy.joules() - made.joules[k]),
              known.energy->repeatability.joules())
        << known.name;
  }
}

TEST(Replay, SeparatesCollinearKernels) {
  SyntheticRun run = repeated_model();
  const auto without = only_activity(synthesise(run).recording);
  run.alone = 0.8;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    const std::string name = "kernel " + std::to_string(k);
    EXPECT_FALSE(row(without, name).resolvable);
    const auto& known = row(p, name);
    EXPECT_TRUE(known.resolvable) << name;
    EXPECT_NEAR(known.energy->energy.joules(), made.joules[k], 0.06 * made.joules[k]) << name;
    EXPECT_LT(std::abs(known.energy->energy.joules() - made.joules[k]),
              known.energy->repeatability.joules());
  }
}

// As in generation: launches of some microseconds, and long waits for the host, which draw 2 W more
// than the idle power.
TEST(Replay, SeparatesKernelsOfAProgramThatWaits) {
  SyntheticRun run;
  run.kernels = {{260, 7e-6, 200e-6}, {120, 5e-6, 200e-6}, {200, 6e-6, 200e-6}};
  run.together = true;
  run.seconds = 20;
  run.waiting = 2;
  run.alone = 0.4;
  run.alone_pause = 1e-6;
  for (run.seed = 1; run.seed <= 3; ++run.seed) {
    const auto made = synthesise(run);
    const auto p = only_activity(made.recording);
    expect_resolved(p, made);
  }
}

// Something without a record, or a link that another board uses, draws power between the launches:
// what is in their intervals for that is not in those of isolated re-runs.
TEST(Replay, SeparatesKernelsOfAProgramWhosePausesDrawPower) {
  SyntheticRun run;
  run.kernels = {{260, 7e-6, 20e-6}, {120, 5e-6, 20e-6}, {200, 6e-6, 20e-6}};
  run.together = true;
  run.seconds = 20;
  run.waiting = 28;
  const auto without = only_activity(synthesise(run).recording);
  run.alone = 0.4;
  run.alone_pause = 1e-6;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    EXPECT_FALSE(row(without, "kernel " + std::to_string(k)).resolvable);
  }
  expect_resolved(p, made);
}

TEST(Replay, SeparatesAMemset) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  auto made = synthesise(run);
  auto& memset = made.recording.traces[0].classes[2];
  memset = {model::ActivityKind::kMemset, "memset", {}, {}, 4096};
  const auto p = only_activity(made.recording);
  for (const auto& [name, k] : {std::pair("kernel 0", 0u), {"kernel 1", 1u}, {"memset", 2u}}) {
    const auto& known = row(p, name);
    EXPECT_TRUE(known.resolvable) << name;
    EXPECT_NEAR(known.energy->energy.joules(), made.joules[k], 0.06 * made.joules[k]) << name;
  }
}

TEST(Replay, IsInNoFigureOfTheProgram) {
  SyntheticRun run = repeated_model();
  const auto without = only_activity(synthesise(run).recording);
  run.alone = 0.8;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  EXPECT_EQ(p.idle + p.kernels + p.gaps + p.unattributed, p.measured.energy);
  EXPECT_NEAR(p.measured.energy.joules(), without.measured.energy.joules(),
              0.01 * without.measured.energy.joules());
  EXPECT_NEAR(seconds(p.length()), seconds(without.length()), 0.01);
  EXPECT_EQ(p.launches, without.launches);
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    const std::string name = "kernel " + std::to_string(k);
    EXPECT_EQ(row(p, name).launches, row(without, name).launches);
    EXPECT_NEAR(seconds(row(p, name).busy), made.busy[k], 1e-5);
  }
  for (const auto& layer : p.by_layer) EXPECT_NE(layer.name, "(outside of layers)");
  ASSERT_TRUE(p.replay);
  EXPECT_NEAR(seconds(p.replay_time), 3 * (0.8 + 0.15), 0.01);
  const double true_joules = made.replay_joules + run.idle * seconds(p.replay_time);
  EXPECT_NEAR(p.replay->energy.joules(), true_joules, 0.02 * true_joules);
  EXPECT_FALSE(without.replay);
}

TEST(Replay, ThatTakesAnotherTimeThanInPlaceIsNotUsed) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  run.alone_longer = {1, 1.4, 1};
  const auto p = only_activity(synthesise(run).recording);
  EXPECT_THAT(p.warnings,
              Contains(AllOf(HasSubstr("kernel 1 (+40 %)"), Not(HasSubstr("kernel 0")))));
  run.alone_longer = {1, 1.05, 0.96};
  EXPECT_THAT(only_activity(synthesise(run).recording).warnings,
              Not(Contains(HasSubstr("not used"))));
}

TEST(Replay, OneKernelOfTwoSizesIsSeparatedByItsTimes) {
  SyntheticRun run;
  run.kernels = {{450, 40e-6, 1e-6}, {250, 14e-6, 1e-6}, {300, 10e-6, 1e-6}};
  run.together = true;
  run.wander = 0.02;
  run.seconds = 20;
  run.alone = 0.8;
  auto made = synthesise(run);
  auto& trace = made.recording.traces[0];
  trace.classes[1] = trace.classes[0];  // the same grid
  const auto p = only_activity(made.recording);
  EXPECT_EQ(p.by_kernel.size(), 2u);
  Energy sum;
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    const auto& layer = p.by_layer[k];
    const double off = std::abs(layer.energy->energy.joules() - made.joules[k]);
    EXPECT_LT(off, 0.06 * made.joules[k]) << layer.name;
    EXPECT_LT(off, layer.energy->repeatability.joules()) << layer.name;
    EXPECT_TRUE(layer.resolvable) << layer.name;
    sum += layer.energy->energy;
  }
  EXPECT_EQ(sum, p.kernels);
}

TEST(Replay, DrawsOtherPowerThanInPlaceAndTheBalanceHolds) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  run.alone_watts = 0.88;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  EXPECT_LT(std::abs(p.unattributed.joules()), 0.01 * p.measured.energy.joules());
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    const auto& known = row(p, "kernel " + std::to_string(k));
    EXPECT_NEAR(known.energy->energy.joules(), made.joules[k], 0.04 * made.joules[k]);
  }
}

// At a power limit, re-runs have higher clocks than the program, and kernels draw more power.
TEST(Replay, AtOtherClocksIsNotUsed) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  run.cap = 330;
  const auto made = synthesise(run);
  const auto p = only_activity(made.recording);
  EXPECT_THAT(p.warnings, Contains(AllOf(HasSubstr("re-runs not used"), HasSubstr("1980 MHz"))));
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    const auto& known = row(p, "kernel " + std::to_string(k));
    EXPECT_LT(std::abs(known.energy->energy.joules() - made.joules[k]),
              known.energy->repeatability.joules());
  }
}

// Until a kernel runs at the program's clock it draws more: what it drew then is in no loop.
TEST(Replay, WhatAKernelDrawsBeforeItsLoopHasTheClockOfTheProgramCountsLittle) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  run.cap = 330;
  run.tried = 0.8;
  for (run.seed = 1; run.seed <= 3; ++run.seed) {
    const auto made = synthesise(run);
    const auto p = only_activity(made.recording);
    EXPECT_LT(std::abs(p.unattributed.joules()), 0.01 * p.measured.energy.joules());
    expect_resolved(p, made);
  }
}

TEST(Replay, OfACappedProgramIsNotUsedWhereClocksAreUnknown) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  run.cap = 330;
  auto made = synthesise(run);
  std::erase_if(made.recording.readings.gauges, [](const auto& r) { return r.sensor == kClock; });
  EXPECT_THAT(only_activity(made.recording).warnings,
              Contains(AllOf(HasSubstr("re-runs not used"), HasSubstr("clocks are unknown"))));
  run.cap = 800;
  made = synthesise(run);
  EXPECT_THAT(only_activity(made.recording).warnings, Not(Contains(HasSubstr("re-runs not used"))));
  std::erase_if(made.recording.readings.gauges, [](const auto& r) { return r.sensor == kClock; });
  EXPECT_THAT(only_activity(made.recording).warnings, Not(Contains(HasSubstr("re-runs not used"))));
}

TEST(Replay, BetweenTwoProgramsIsLeftOutToo) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  auto made = synthesise(run);
  const auto before = only_activity(made.recording);
  // Another process that runs one launch of kernel 0, 0.4 s after the replays.
  model::Trace other = made.recording.traces[0];
  const HostTime last = other.chunks.back().end;
  other.chunks.clear();
  model::ActivityBins bins({},
                           [&](model::ActivityChunk c) { other.chunks.push_back(std::move(c)); });
  const HostTime later = last + std::chrono::milliseconds{400};
  bins.add({later, later + std::chrono::microseconds{20}, 0, 0, 0});
  bins.finish();
  made.recording.traces.push_back(std::move(other));
  const auto p = only_activity(made.recording);
  EXPECT_EQ(p.launches, before.launches + 1);
  EXPECT_EQ(p.idle + p.kernels + p.gaps + p.unattributed, p.measured.energy);
  EXPECT_EQ(p.replay_inside, p.replay_time);
  // Idle before and after the replays, and a launch.
  EXPECT_NEAR(p.measured.energy.joules() - before.measured.energy.joules(), run.idle * 0.7,
              0.02 * before.measured.energy.joules());
}

TEST(Replay, TheSummaryEndsWhereTheProgramDid) {
  SyntheticRun run = repeated_model();
  run.alone = 0.8;
  auto made = synthesise(run);
  auto& r = made.recording;
  const ReplayTime replay = replay_time(r);
  ASSERT_EQ(replay.spans().size(), 1u);
  r.run.source = "run";
  r.run.work_begin = at(1.0);
  r.run.work_end = replay.spans()[0].end + std::chrono::milliseconds{200};
  const auto whole = profile_of(r);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->end, replay.spans()[0].begin);
  EXPECT_THAT(whole->warnings, Contains(AllOf(HasSubstr("in no figure"), HasSubstr("for 2.8 s"))));
  const Part all{std::nullopt, *r.run.work_end - *r.run.work_begin};
  const auto asked = profile_of(r, all);
  EXPECT_EQ(asked->end, *r.run.work_end);
  EXPECT_THAT(asked->warnings, Contains(HasSubstr("include")));
  // Something that came after it belongs to the program.
  r.traces[0].chunks.push_back({model::ChunkKind::kLayers, model::kNone, replay.spans()[0].end,
                                replay.spans()[0].end + std::chrono::milliseconds{50}, ""});
  EXPECT_EQ(profile_of(r)->end, *r.run.work_end);
}

}  // namespace
}  // namespace jouleprof::analysis
