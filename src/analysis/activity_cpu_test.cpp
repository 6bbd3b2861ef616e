#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "model/activity_codec.h"

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

}  // namespace
}  // namespace jouleprof::analysis
