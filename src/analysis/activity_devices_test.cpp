#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

TEST(Attribute, OnACpuLayersShareByTimeAndAreEstimates) {
  model::Recording r;
  r.domains.push_back({kGpu0, model::DomainKind::kCpu, "package-0", "CPU", "", {}, true, ""});
  model::Sensor counter{kCounter, kGpu0, model::SensorKind::kEnergyCounter, "energy_uj", {}, {}};
  counter.traits.refresh = std::chrono::milliseconds{1};
  r.sensors = {counter};
  // 20 W for a second, then 50 W for ten.
  for (int i = 0; i <= 1100; ++i) {
    const double t = 0.01 * i;
    const double joules = 20 * std::min(t, 1.0) + 50 * std::max(t - 1, 0.0);
    r.readings.counters.push_back({kCounter, at(t), at(t), Energy::joules(joules)});
  }
  r.idle_spans.push_back({at(0), at(1)});
  r.run.work_begin = at(1);
  r.run.work_end = at(11);
  model::Process process;
  process.id = model::ProcessId{1};
  process.pid = 7;
  process.in_tree = true;
  process.start = at(1);
  r.processes.push_back(process);
  for (int s = 0; s <= 11; ++s) {
    model::ProcessReading reading;
    reading.process = process.id;
    reading.at = at(s);
    reading.cpu_time = std::chrono::seconds{std::max(s - 1, 0)};
    r.process_readings.processes.push_back(reading);
    model::MachineReading machine;
    machine.at = at(s);
    machine.busy_cpu_time = std::chrono::seconds{std::max(s - 1, 0)};
    machine.total_cpu_time = std::chrono::seconds{2 * s};
    r.process_readings.machine.push_back(machine);
  }
  model::Trace trace;
  trace.pid = 7;
  trace.layers = {a_layer("Net"), a_layer("fc", 0)};
  model::ActivityEncoder encoder;
  encoder.add(model::LayerEntry{0, model::Phase::kForward, 10, 2'000'000'000, 0});
  encoder.add(model::LayerEntry{1, model::Phase::kForward, 20, 6'000'000'000, 0});
  trace.chunks.push_back({model::ChunkKind::kLayers, model::kNone, at(1), at(11), encoder.take()});
  r.traces.push_back(trace);

  const auto profiles = activity_of(r);
  ASSERT_TRUE(profiles && profiles->size() == 1u);
  const auto& p = profiles->front();
  EXPECT_EQ(p.idle + p.kernels + p.gaps + p.unattributed, p.measured.energy);
  ASSERT_EQ(p.by_layer.size(), 3u);
  EXPECT_NEAR(p.by_layer[0].energy->energy.joules(), 60, 3);  // 30 W above idle for 2 of 10 s
  EXPECT_NEAR(p.by_layer[1].energy->energy.joules(), 180, 9);
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 240, 12);
  EXPECT_EQ(p.by_layer[1].count, 20u);
  EXPECT_EQ(p.by_layer[1].energy->provenance, model::Provenance::kEstimated);
  EXPECT_EQ(p.by_layer[2].name, "(outside of layers)");
}

TEST(Attribute, ProcessesThatShareAGpuShareTheTime) {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 10;
  auto made = synthesise(run);
  // The same work, traced in two processes: each bin is full twice.
  made.recording.traces.push_back(made.recording.traces[0]);
  made.recording.traces[0].rank.global = 1;
  const auto p = only_activity(made.recording);
  expect_conserved(p);
  double busy = 0;
  for (const auto& row : p.by_kernel) busy += seconds(row.busy);
  EXPECT_LE(busy, seconds(p.end - p.begin) * 1.0001);
  // Each process is a row that holds its three layers.
  ASSERT_EQ(p.by_layer.size(), 8u);
  EXPECT_TRUE(p.by_layer[0].name.starts_with("rank 1, pid ")) << p.by_layer[0].name;
  EXPECT_TRUE(p.by_layer[4].name.starts_with("pid ")) << p.by_layer[4].name;
  EXPECT_EQ(p.by_layer[1].parent, 0u);
  EXPECT_EQ(p.by_layer[5].parent, 4u);
}

TEST(Attribute, AGpuHasOnlyTheLayersOfProcessesThatUsedIt) {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 10;
  auto made = synthesise(run);
  model::Trace other = made.recording.traces[0];
  other.pid = 77;
  for (auto& device : other.devices) device.uuid = "GPU-another";
  made.recording.traces.push_back(other);
  const auto p = only_activity(made.recording);
  ASSERT_EQ(p.by_layer.size(), 4u);
  for (const auto& row : p.by_layer) EXPECT_EQ(row.name.find("77"), std::string::npos);
}

TEST(Attribute, StacksSumToTheKernels) {
  SyntheticRun run;
  run.kernels = various_kernels(3);
  run.seconds = 10;
  const auto p = only_activity(synthesise(run).recording);
  ASSERT_FALSE(p.stacks.empty());
  Energy sum;
  std::vector<Energy> by_kernel(p.by_kernel.size());
  for (const auto& stack : p.stacks) {
    sum += stack.energy;
    by_kernel.at(stack.kernel) += stack.energy;
  }
  EXPECT_EQ(sum, p.kernels);
  for (std::size_t i = 0; i < by_kernel.size(); ++i) {
    EXPECT_EQ(by_kernel[i], p.by_kernel[i].energy->energy);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
