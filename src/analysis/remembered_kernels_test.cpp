// Runs whose kernels' watts are known, with what earlier runs found.
#include "analysis/kernels/remembered_kernels.h"

#include <gmock/gmock.h>

#include <cmath>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using testing::Contains;
using testing::HasSubstr;

const std::vector<KernelSpec> kTwo{{400, 20e-6, 1e-6}, {200, 20e-6, 1e-6}};
constexpr RealTime kFirstDay{std::chrono::hours{24 * 20000}};

// Kernels that run apart from each other: each one is resolved.
SyntheticRun apart(std::vector<KernelSpec> kernels = kTwo) {
  SyntheticRun run;
  run.kernels = std::move(kernels);
  run.seconds = 8;
  return run;
}

// The same kernels, always one after the other: collinear.
SyntheticRun together(std::vector<KernelSpec> kernels = kTwo) {
  SyntheticRun run = apart(std::move(kernels));
  run.together = true;
  run.wander = 0.02;
  run.seed = 2;
  return run;
}

// What a run in which they run apart resolves, as of a day.
std::vector<model::RememberedKernel> remembered(int day = 0) {
  static const auto resolved = only_activity(synthesise(apart()).recording).resolved;
  auto found = resolved;
  for (auto& kernel : found) kernel.observed = kFirstDay + std::chrono::hours{24 * day};
  return found;
}

const model::ActivityRow& row_of(const model::ActivityProfile& p, const std::string& name) {
  for (const auto& row : p.by_kernel) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << name;
  return p.by_kernel.front();
}

double off(const model::ActivityProfile& p, const Synthesised& made, std::size_t k) {
  const auto& row = row_of(p, "kernel " + std::to_string(k));
  return row.energy->energy.joules() - made.joules[k];
}

void expect_covered(const model::ActivityProfile& p, const Synthesised& made) {
  for (std::size_t k = 0; k < made.joules.size(); ++k) {
    const auto& row = row_of(p, "kernel " + std::to_string(k));
    EXPECT_LE(std::abs(off(p, made, k)), row.energy->repeatability.joules()) << row.name;
  }
}

TEST(RememberedKernels, ARunResolvesWhatItsOwnReadingsSeparate) {
  const auto made = synthesise(apart());
  const auto found = only_activity(made.recording).resolved;
  ASSERT_EQ(found.size(), 2u);
  for (const auto& kernel : found) {
    const double truth = kernel.kernel.name == "kernel 0" ? 400 : 200;
    EXPECT_NEAR(kernel.power.watts(), truth, 0.03 * truth);
    EXPECT_NEAR(seconds(kernel.launch), 20e-6, 1e-8);
    EXPECT_GT(kernel.error.watts(), 0.06 * truth);
    EXPECT_LT(kernel.error.watts(), 0.2 * truth);
    EXPECT_EQ(kernel.board, "GPU-synthetic");
    EXPECT_FALSE(kernel.sm_clock_hertz);
  }
  EXPECT_TRUE(only_activity(synthesise(together()).recording).resolved.empty());
}

TEST(RememberedKernels, CollinearKernelsAreResolvedByAnEarlierRun) {
  auto made = synthesise(together());
  const auto before = only_activity(made.recording);
  for (const auto& row : before.by_kernel) {
    EXPECT_FALSE(row.resolvable);
    EXPECT_FALSE(row.remembered);
  }
  EXPECT_FALSE(before.remembered);

  made.recording.remembered = remembered();
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  expect_covered(p, made);
  for (const auto& row : p.by_kernel) {
    EXPECT_TRUE(row.resolvable);
    EXPECT_TRUE(row.remembered);
    EXPECT_EQ(row.group, model::kNone);
    EXPECT_LT(row.energy->repeatability.joules(), 0.2 * row.energy->energy.joules());
  }
  for (const auto& row : p.by_layer) EXPECT_TRUE(row.remembered) << row.name;
  ASSERT_TRUE(p.remembered);
  EXPECT_EQ(*p.remembered, (model::RememberedUse{2, 0, kFirstDay, kFirstDay}));
  EXPECT_THAT(p.method, HasSubstr("earlier runs"));
  // What rests on memory is no new evidence.
  EXPECT_TRUE(p.resolved.empty());
}

TEST(RememberedKernels, TheSumOfCollinearKernelsIsTheRunsOwn) {
  auto made = synthesise(together({{440, 20e-6, 1e-6}, {220, 20e-6, 1e-6}}));
  const auto before = only_activity(made.recording);
  made.recording.remembered = remembered();  // 10 % below
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  expect_covered(p, made);
  EXPECT_NEAR(p.kernels.joules(), before.kernels.joules(), 0.005 * before.kernels.joules());
}

TEST(RememberedKernels, KernelsThatTheRunSeparatesDoNotRestOnEarlierRuns) {
  SyntheticRun run = apart();
  run.seed = 3;
  auto made = synthesise(run);
  const auto before = only_activity(made.recording);
  made.recording.remembered = remembered();
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  expect_covered(p, made);
  for (const auto& row : p.by_kernel) EXPECT_FALSE(row.remembered);
  // And what they resolve is what they resolved without.
  EXPECT_EQ(p.resolved, before.resolved);
}

TEST(RememberedKernels, ARunThatContradictsAnEarlierOneWinsAndSaysSo) {
  auto made = synthesise(apart({{520, 20e-6, 1e-6}, {200, 20e-6, 1e-6}}));
  const auto before = only_activity(made.recording);
  made.recording.remembered = remembered();
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  expect_covered(p, made);
  ASSERT_TRUE(p.remembered);
  EXPECT_EQ(p.remembered->kernels, 1u);
  EXPECT_EQ(p.remembered->contradicted, 1u);
  EXPECT_THAT(p.warnings, Contains(HasSubstr("contradicts this run and was not used: kernel 0")));
  EXPECT_FALSE(row_of(p, "kernel 0").remembered);
  EXPECT_NEAR(off(p, made, 0), off(before, made, 0), 0.01 * made.joules[0]);
}

// Which of two collinear kernels changed can't be decided: neither rests on memory.
TEST(RememberedKernels, AChangedSumOfCollinearKernelsContradictsBoth) {
  auto made = synthesise(together({{560, 20e-6, 1e-6}, {200, 20e-6, 1e-6}}));
  made.recording.remembered = remembered();
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  ASSERT_TRUE(p.remembered);
  EXPECT_EQ(p.remembered->contradicted, 2u);
  for (const auto& row : p.by_kernel) {
    EXPECT_FALSE(row.remembered);
    EXPECT_FALSE(row.resolvable);
  }
  expect_covered(p, made);
}

// Wrong memories whose sum is right can't be detected; the interval is that of the spread.
TEST(RememberedKernels, TheIntervalContainsTheSpreadBetweenRuns) {
  auto made = synthesise(together());
  made.recording.remembered = remembered();
  for (auto& r : made.recording.remembered) {
    const bool first = r.kernel.name == "kernel 0";
    r.power = first ? 0.95 * r.power : 1.1 * r.power;
  }
  const auto p = only_activity(made.recording);
  EXPECT_EQ(p.remembered->contradicted, 0u);
  expect_covered(p, made);
}

TEST(RememberedKernels, RepeatsThatAgreeNarrowTheIntervalAndThoseThatDifferWidenIt) {
  auto made = synthesise(together());
  const auto width = [&](double spread, int days) {
    made.recording.remembered.clear();
    for (int day = 0; day < days; ++day) {
      for (auto r : remembered(day)) {
        r.power = (1 + spread * (day % 2 == 0 ? 1 : -1)) * r.power;
        made.recording.remembered.push_back(r);
      }
    }
    return row_of(only_activity(made.recording), "kernel 0").energy->repeatability.joules();
  };
  const double once = width(0, 1);
  EXPECT_LT(width(0, 5), 0.95 * once);
  EXPECT_GT(width(0.12, 5), 1.15 * once);
}

TEST(RememberedKernels, OnlyTheSameKernelOnTheSameBoardIsUsed) {
  auto made = synthesise(together());
  const auto found = remembered();
  const auto used_with = [&](auto change) {
    made.recording.remembered = found;
    for (auto& r : made.recording.remembered) change(r);
    return only_activity(made.recording).remembered.has_value();
  };
  EXPECT_TRUE(used_with([](auto&) {}));
  EXPECT_FALSE(used_with([](auto& r) { r.board = "GPU-another"; }));
  EXPECT_FALSE(used_with([](auto& r) { r.kernel.grid[0] += 10; }));
  EXPECT_FALSE(used_with([](auto& r) { r.launch = r.launch * 11 / 10; }));
  EXPECT_TRUE(used_with([](auto& r) { r.launch = r.launch * 103 / 100; }));
  EXPECT_FALSE(used_with([](auto& r) { r.sm_clock_hertz = 1.98e9; }));
}

TEST(RememberedKernels, FromAnotherClockPowerIsScaledAndInDoubt) {
  ActivityTable table;
  auto& gemm = table.classes.emplace_back();
  gemm.key.name = "gemm";
  gemm.whole_launches = 1000;
  gemm.launches_busy = 0.02;
  model::RememberedKernel then;
  then.board = "GPU-1";
  then.kernel = gemm.key;
  then.launch = std::chrono::microseconds{20};
  then.power = Power::watts(400);
  then.error = Power::watts(8);
  then.sm_clock_hertz = 1.98e9;
  const auto at = [&](double hertz) { return known_kernels({&then, 1}, "GPU-1", table, hertz); };
  ASSERT_EQ(at(1.98e9).size(), 1u);
  EXPECT_DOUBLE_EQ(at(1.98e9)[0].watts, 400);
  const double ratio = 1.7 / 1.98;
  ASSERT_EQ(at(1.7e9).size(), 1u);
  const KnownKernel now = at(1.7e9)[0];
  EXPECT_DOUBLE_EQ(now.watts, 400 * power_by_clock(1, ratio).ratio);
  EXPECT_GT(now.sigma, now.watts * power_by_clock(1, ratio).off / 1.96);
  EXPECT_LT(at(1.98e9)[0].sigma / 400, now.sigma / now.watts);
  EXPECT_TRUE(at(1.4e9).empty());  // too far
  EXPECT_TRUE(known_kernels({&then, 1}, "GPU-1", table, {}).empty());
  then.launch = std::chrono::microseconds{18};  // as the clocks explain, of one that computes
  EXPECT_EQ(at(1.7e9).size(), 1u);
  EXPECT_TRUE(at(1.98e9).empty());
  then.launch = std::chrono::microseconds{23};  // slower at the higher clock
  EXPECT_TRUE(at(1.7e9).empty());
}

TEST(RememberedKernels, AtAPowerLimitThoseOfAFreeClockAreUsed) {
  SyntheticRun run = together();
  run.cap = 300;
  auto made = synthesise(run);
  made.recording.remembered = remembered();
  for (auto& r : made.recording.remembered) r.sm_clock_hertz = kFullClock;
  const auto p = only_activity(made.recording);
  ASSERT_TRUE(p.remembered);
  EXPECT_EQ(p.remembered->contradicted, 0u);
  expect_covered(p, made);
  EXPECT_TRUE(row_of(p, "kernel 1").resolvable);
}

// Clocks vary there, and what is resolved has its own.
TEST(RememberedKernels, AtAPowerLimitTheClockCounts) {
  SyntheticRun run = apart();
  run.cap = 350;
  auto made = synthesise(run);
  made.recording.remembered = remembered();
  ASSERT_FALSE(made.recording.remembered.empty());
  for (auto& r : made.recording.remembered) r.sm_clock_hertz = 1.4 * kFullClock;
  const auto p = only_activity(made.recording);
  EXPECT_FALSE(p.remembered);
  for (const auto& r : p.resolved) EXPECT_LT(r.sm_clock_hertz.value(), 0.97 * kFullClock);
  std::erase_if(made.recording.readings.gauges,
                [](const auto& reading) { return reading.value > 1e8; });  // no clocks
  for (auto& r : made.recording.remembered) r.sm_clock_hertz.reset();
  const auto unknown = only_activity(made.recording);
  EXPECT_TRUE(unknown.resolved.empty());
  EXPECT_FALSE(unknown.remembered);
}

}  // namespace
}  // namespace jouleprof::analysis
