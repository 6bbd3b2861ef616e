#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using model::ActivitySlices;

constexpr std::size_t kCells = 24'000;

model::Recording recorded(double overlapped = 0, double alone = 0) {
  SyntheticRun run;
  run.kernels = various_kernels(5);
  run.seconds = 20;
  run.overlapped = overlapped;
  run.alone = alone;
  return synthesise(run).recording;
}

struct Both {
  ActivitySlices slices;
  model::ActivityProfile profile;
};

Both both_of(const analysis::Run& run, const Part& part = {}) {
  const auto& slices = run.activity_slices(kCells, part);
  const auto& activity = run.activity(part);
  EXPECT_TRUE(slices && activity);
  if (!slices || !activity) return {};
  EXPECT_EQ(slices->size(), 1u);
  EXPECT_EQ(activity->size(), 1u);
  return {slices->front(), activity->front()};
}

double sum_of(const std::vector<Energy>& energies) {
  return std::accumulate(energies.begin(), energies.end(), Energy{}).joules();
}

void expect_sums(const std::vector<ActivitySlices::Row>& slices,
                 const std::vector<model::ActivityRow>& rows, std::size_t count) {
  ASSERT_EQ(slices.size(), rows.size());
  for (const auto& slice : slices) {
    ASSERT_EQ(slice.energies.size(), count);
    ASSERT_EQ(slice.errors.size(), count);
    const auto& whole = *rows.at(slice.row).inclusive;
    EXPECT_NEAR(sum_of(slice.energies), whole.energy.joules(), 2e-3 * whole.energy.joules())
        << rows[slice.row].name;
    // An upper bound that is worth something.
    EXPECT_GE(sum_of(slice.errors), 0.995 * whole.error.joules()) << rows[slice.row].name;
    EXPECT_LE(sum_of(slice.errors), 1.5 * whole.error.joules()) << rows[slice.row].name;
  }
}

TEST(ActivitySlices, SumToTheRows) {
  for (const double overlapped : {0.0, 0.3}) {
    const analysis::Run run(recorded(overlapped));
    const auto [slices, profile] = both_of(run);
    EXPECT_EQ(slices.step, std::chrono::milliseconds{500});
    EXPECT_GE(slices.count, 40u);
    expect_sums(slices.by_kernel, profile.by_kernel, slices.count);
    expect_sums(slices.by_layer, profile.by_layer, slices.count);
    expect_sums(slices.by_phase, profile.by_phase, slices.count);
  }
}

TEST(ActivitySlices, HaveNoTimeOfIsolatedReruns) {
  const analysis::Run run(recorded(0, 1.0));
  const auto [slices, profile] = both_of(run);
  ASSERT_GT(profile.replay_time, Duration{});
  expect_sums(slices.by_kernel, profile.by_kernel, slices.count);
}

TEST(ActivitySlices, AreThoseOfThePart) {
  const analysis::Run run(recorded());
  const auto [slices, profile] = both_of(run);
  const auto begin = run.span()->begin;
  // Edges of slices, some way in.
  const std::size_t first = 5;
  const std::size_t last = 11;
  const Duration from = slices.begin + first * slices.step - begin;
  const auto& part = run.activity(Part{from, from + (last - first) * slices.step});
  ASSERT_TRUE(part);
  ASSERT_EQ(part->size(), 1u);
  for (const auto& row : part->front().by_kernel) {
    const auto known = std::find_if(
        slices.by_kernel.begin(), slices.by_kernel.end(),
        [&](const auto& slice) { return profile.by_kernel[slice.row].name == row.name; });
    ASSERT_NE(known, slices.by_kernel.end());
    double joules = 0;
    double error = 0;
    for (std::size_t i = first; i < last; ++i) {
      joules += known->energies[i].joules();
      error += known->errors[i].joules();
    }
    EXPECT_NEAR(joules, row.energy->energy.joules(), 1e-3 * joules) << row.name;
    EXPECT_GE(error, 0.995 * row.energy->error.joules()) << row.name;
  }
}

TEST(ActivitySlices, OfAPartCoverOnlyIt) {
  const analysis::Run run(recorded());
  const auto [slices, profile] =
      both_of(run, Part{std::chrono::milliseconds{4500}, std::chrono::seconds{9}});
  EXPECT_LE(slices.count, 11u);
  expect_sums(slices.by_kernel, profile.by_kernel, slices.count);
}

TEST(ActivitySlices, FewCellsMakeLongSlices) {
  const analysis::Run run(recorded());
  const auto& slices = run.activity_slices(1);
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->front().step, std::chrono::seconds{2});
}

// What layers did within a chunk is not known by parts of it.
TEST(ActivitySlices, AreNoShorterThanTheChunksOfScopes) {
  auto recording = recorded();
  for (auto& chunk : recording.traces.front().chunks) {
    if (chunk.kind == model::ChunkKind::kScopes) chunk.end = chunk.begin + std::chrono::seconds{1};
  }
  const analysis::Run run(std::move(recording));
  const auto& slices = run.activity_slices(kCells);
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->front().step, std::chrono::seconds{1});
}

TEST(ActivitySlices, OfARecordingWithoutATraceAreNone) {
  auto recording = recorded();
  recording.traces.clear();
  const analysis::Run run(std::move(recording));
  const auto& slices = run.activity_slices(kCells);
  ASSERT_TRUE(slices);
  EXPECT_TRUE(slices->empty());
}

}  // namespace
}  // namespace jouleprof::analysis
