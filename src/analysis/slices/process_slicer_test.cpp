#include "analysis/slices/process_slicer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "analysis/recorded_run_test.h"
#include "analysis/synthetic_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using model::ProcessSlices;

constexpr std::size_t kCells = 24'000;

Energy sum_of(const std::vector<Energy>& energies) {
  return std::accumulate(energies.begin(), energies.end(), Energy{});
}

const ProcessSlices::Row* row_of(const ProcessSlices& slices, model::ProcessId process,
                                 model::DomainId domain) {
  for (const auto& row : slices.rows) {
    if (row.process == process && row.domain == domain) return &row;
  }
  return nullptr;
}

double joules_in(const ProcessSlices::Row& row, std::size_t first, std::size_t last) {
  Energy sum;
  for (std::size_t i = std::max(first, row.first); i < last; ++i) {
    if (i - row.first < row.energies.size()) sum += row.energies[i - row.first];
  }
  return sum.joules();
}

// Each share of the profile, and no other energy.
void expect_shares(const ProcessSlices& slices, const model::Profile& profile) {
  std::size_t shares = 0;
  for (const auto& p : profile.processes) {
    for (const auto& share : p.shares) {
      if (share.energy == Energy{}) continue;
      ++shares;
      const auto* row = row_of(slices, p.process.id, share.domain);
      ASSERT_NE(row, nullptr) << p.process.name;
      EXPECT_EQ(sum_of(row->energies), share.energy) << p.process.name;
      EXPECT_LE(row->first + row->energies.size(), slices.count);
    }
  }
  EXPECT_GT(shares, 0u);
  EXPECT_EQ(slices.rows.size(), shares);
}

// Two processes on a GPU and a CPU: "train" works throughout, "load" in the last four of ten
// seconds.
model::Recording of_two() {
  Recorded recorded;
  recorded.read_gpu();
  recorded.read_cpu();
  auto& r = recorded.recording;
  r.processes.push_back({model::ProcessId{7}, 100, {}, 1, "train", "", at(3), {}, true});
  r.processes.push_back({model::ProcessId{8}, 101, {}, 100, "load", "", at(9), {}, true});
  for (int t = 0; t <= 16; ++t) {
    const auto worked = std::chrono::seconds{std::clamp(t - 3, 0, 10)};
    const auto late = std::chrono::seconds{std::clamp(t - 9, 0, 4)};
    auto& readings = r.process_readings;
    readings.machine.push_back({at(t), worked + late, std::chrono::seconds{4 * t}, 0});
    if (t >= 3) readings.processes.push_back({model::ProcessId{7}, at(t), worked, {}, {}, {}, {}});
    if (t >= 9) readings.processes.push_back({model::ProcessId{8}, at(t), late, {}, {}, {}, {}});
    if (t < 3 || t > 13) continue;
    readings.gpu_processes.push_back({model::ProcessId{7}, kGpu0, at(t), 0.6, {}});
    if (t >= 9) readings.gpu_processes.push_back({model::ProcessId{8}, kGpu0, at(t), 0.3, {}});
  }
  return r;
}

TEST(ProcessSlicer, SharesByUseSumExactly) {
  const analysis::Run run(of_two());
  const auto& slices = run.process_slices(kCells);
  ASSERT_TRUE(slices) << slices.error().message;
  EXPECT_EQ(slices->step, std::chrono::seconds{1});
  EXPECT_EQ(slices->count, 10u);
  expect_shares(*slices, *run.profile());
}

TEST(ProcessSlicer, EnergyLiesWhereTheProcessWorked) {
  const analysis::Run run(of_two());
  const auto& slices = *run.process_slices(kCells);
  for (const auto domain : {kGpu0, kPackage0}) {
    const auto* late = row_of(slices, model::ProcessId{8}, domain);
    ASSERT_NE(late, nullptr);
    EXPECT_GE(late->first, 5u);
    EXPECT_NEAR(joules_in(*late, 5, 10), sum_of(late->energies).joules(), 1e-6);
  }
  ASSERT_EQ(slices.cpu_times.size(), 2u);
  const auto& longest = slices.cpu_times.front();
  EXPECT_EQ(longest.process, model::ProcessId{7});
  EXPECT_NEAR(seconds(longest.times.at(2)), 1, 1e-6);
  EXPECT_EQ(slices.cpu_times.back().first, 6u);
}

TEST(ProcessSlicer, ASelectionHasTheEnergyOfThePart) {
  const analysis::Run run(of_two());
  const auto& slices = *run.process_slices(kCells);
  const auto& part = run.profile(Part{std::chrono::seconds{2}, std::chrono::seconds{8}});
  ASSERT_TRUE(part);
  for (const auto& p : part->processes) {
    for (const auto& share : p.shares) {
      const auto* row = row_of(slices, p.process.id, share.domain);
      ASSERT_NE(row, nullptr);
      EXPECT_NEAR(joules_in(*row, 2, 8), share.energy.joules(), 0.05 * share.energy.joules())
          << p.process.name;
    }
  }
}

TEST(ProcessSlicer, AReadingThatCoversSeveralSlicesIsDividedByPower) {
  auto recording = of_two();
  auto& readings = recording.process_readings;
  // Read at 1, 5, 9 and 13 s only.
  const auto rare = [](const auto& r) { return (r.at - at(1)).count() % 4'000'000'000 != 0; };
  std::erase_if(readings.machine, rare);
  std::erase_if(readings.processes, rare);
  std::erase_if(readings.gpu_processes, rare);
  const analysis::Run run(std::move(recording));
  const auto& slices = *run.process_slices(kCells);
  expect_shares(slices, *run.profile());
  const auto* row = row_of(slices, model::ProcessId{7}, kPackage0);
  ASSERT_NE(row, nullptr);
  for (std::size_t s = 2; s < 6; ++s) {
    EXPECT_NEAR(joules_in(*row, s, s + 1), joules_in(*row, 2, 6) / 4, 1) << s;
  }
}

// Two traced processes, the second of which works in the second half only.
model::Recording of_two_traced() {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 20;
  auto made = synthesise(run);
  auto& r = made.recording;
  auto second = r.traces[0];
  second.pid = r.traces[0].pid + 1;
  second.program = "second";
  std::erase_if(second.chunks, [](const auto& chunk) { return chunk.begin < at(11); });
  r.traces.push_back(std::move(second));
  return r;
}

TEST(ProcessSlicer, TracedProcessesHaveTheEnergyOfTheirKernels) {
  const analysis::Run run(of_two_traced());
  const auto& slices = run.process_slices(kCells);
  ASSERT_TRUE(slices) << slices.error().message;
  const auto& profile = *run.profile();
  ASSERT_EQ(profile.processes.size(), 2u);
  expect_shares(*slices, profile);
  const auto late = std::find_if(profile.processes.begin(), profile.processes.end(),
                                 [](const auto& p) { return p.process.name == "second"; });
  ASSERT_NE(late, profile.processes.end());
  const auto* row = row_of(*slices, late->process.id, kGpu0);
  ASSERT_NE(row, nullptr);
  EXPECT_GE(row->first, 8u);
  EXPECT_GT(joules_in(*row, 12, 18), 0.4 * sum_of(row->energies).joules());
  // The first one has the board to itself for half of the time, and then shares it.
  const auto& first = profile.processes[late == profile.processes.begin() ? 1 : 0];
  const auto* alone = row_of(*slices, first.process.id, kGpu0);
  ASSERT_NE(alone, nullptr);
  EXPECT_GT(joules_in(*alone, 2, 8), 1.4 * joules_in(*alone, 12, 18));
}

TEST(ProcessSlicer, OfARecordingWithoutProcessesIsEmpty) {
  auto recording = of_two();
  recording.processes.clear();
  recording.process_readings.clear();
  const analysis::Run run(std::move(recording));
  const auto& slices = run.process_slices(kCells);
  ASSERT_TRUE(slices);
  EXPECT_TRUE(slices->rows.empty());
  EXPECT_EQ(slices->count, 0u);
}

}  // namespace
}  // namespace jouleprof::analysis
