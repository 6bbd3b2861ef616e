// Layers on a CPU whose energy is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using namespace std::chrono_literals;

// A program that sleeps for 8 s at 40 W, and then is in two layers for 2 s at 100 W, on four cores.
struct CpuRun {
  model::Recording recording;
  model::ActivityEncoder entries;

  explicit CpuRun(double others_cores = 0, bool idle_known = true) {
    Truth truth;
    truth.hold(40, 10);
    truth.hold(100, 2);
    truth.hold(40, 2);
    auto& r = recording;
    const GpuSensors sensors{.window = 0.003, .lag = 0.0027, .rise = 0.014};
    r.domains.push_back({kGpu0, model::DomainKind::kCpu, "package-0", "CPU", "", {}, true, ""});
    r.sensors = {sensors.counter(), sensors.ring()};
    r.readings.powers = sensors.samples(truth, 0.1, truth.end());
    r.readings.counters = sensors.reads(truth, 0.1, truth.end());
    r.run.source = "run";
    r.run.work_begin = at(2);
    r.run.work_end = at(12);
    if (idle_known) r.idle_spans.push_back({at(0.3), at(1.8)});
    r.processes.push_back({model::ProcessId{1}, 7, {}, 1, "python", "", at(2), {}, true});
    for (int t = 2; t <= 12; ++t) {
      const double used = 4.0 * std::max(t - 10, 0);
      r.process_readings.processes.push_back(
          {model::ProcessId{1}, at(t), duration_of(used), {}, {}, {}, {}});
      const double all = used + others_cores * std::max(t - 10, 0);
      r.process_readings.machine.push_back({at(t), duration_of(all), 8s * t, 0});
    }
    model::Trace trace;
    trace.pid = 7;
    trace.program = "python";
    trace.layers = {a_layer("Net"), a_layer("fc", 0)};
    r.traces.push_back(std::move(trace));
  }

  static std::uint64_t nanoseconds(double s) { return static_cast<std::uint64_t>(s * 1e9); }

  // Seconds outside of layers, wall time and CPU time.
  void outside(model::Phase phase, std::uint64_t times, double wall, double cpu) {
    entries.add(model::PhaseEntry{phase, times, nanoseconds(wall), nanoseconds(cpu)});
  }

  // `cpu`: seconds of the process within Net, reported for the time since `begin`.
  model::ActivityProfile profile(double cpu, double begin = 2) {
    model::ActivityEncoder encoder;
    const auto forward = model::Phase::kForward;
    encoder.add(model::LayerEntry{0, forward, 10, nanoseconds(0.5), nanoseconds(cpu)});
    encoder.add(model::LayerEntry{1, forward, 20, nanoseconds(1.5), 0});
    recording.traces[0].chunks = {
        {model::ChunkKind::kLayers, model::kNone, at(begin), at(12), encoder.take()},
        {model::ChunkKind::kPhases, model::kNone, at(begin), at(12), entries.take()}};
    const auto profiles = activity_of(recording);
    EXPECT_TRUE(profiles) << profiles.error().message;
    EXPECT_EQ(profiles->size(), 1u);
    const auto& p = profiles->front();
    EXPECT_EQ(p.idle + p.kernels + p.gaps + p.unattributed, p.measured.energy);
    return p;
  }
};

TEST(LayerTime, LayersHaveTheEnergyOfTheTimeInThem) {
  const auto p = CpuRun().profile(8);
  ASSERT_EQ(p.by_layer.size(), 2u);
  EXPECT_NEAR(p.by_layer[0].energy->energy.joules(), 0.25 * 120, 1);
  EXPECT_NEAR(p.by_layer[1].energy->energy.joules(), 0.75 * 120, 2);
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 120, 3);
  EXPECT_EQ(p.by_layer[1].energy->provenance, model::Provenance::kEstimated);
  EXPECT_NEAR(p.idle.joules(), 400, 4);
}

TEST(LayerTime, CodeOutsideOfLayersHasItsCpuTime) {
  const auto p = CpuRun().profile(6);
  ASSERT_EQ(p.by_layer.size(), 3u);
  EXPECT_EQ(p.by_layer[2].name, "(outside of layers)");
  EXPECT_NEAR(p.by_layer[2].energy->energy.joules(), 0.25 * 120, 1);
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 0.75 * 120, 2);
  EXPECT_NEAR(seconds(p.by_layer[2].busy), 8, 1e-6);
}

// Rows by name, in joules.
std::map<std::string, double> joules(const std::vector<model::ActivityRow>& rows) {
  std::map<std::string, double> found;
  for (const auto& row : rows) found[row.name] = row.energy->energy.joules();
  return found;
}

TEST(LayerTime, PhasesOutsideOfLayersHaveTheirCpuTime) {
  CpuRun run;
  run.outside(model::Phase::kForward, 10, 0, 0);
  run.outside(model::Phase::kBackward, 5, 0.75, 3);
  run.outside(model::Phase::kOptimizer, 4, 0.25, 0.5);
  const auto p = run.profile(4);
  using testing::DoubleNear;
  using testing::Pair;
  using testing::UnorderedElementsAre;
  EXPECT_THAT(joules(p.by_layer),
              UnorderedElementsAre(Pair("Net", DoubleNear(15, 0.5)), Pair("fc", DoubleNear(45, 1)),
                                   Pair("(backward outside of layers)", DoubleNear(45, 1)),
                                   Pair("(optimizer outside of layers)", DoubleNear(7.5, 0.2)),
                                   Pair("(outside of layers)", DoubleNear(7.5, 0.2))));
  EXPECT_THAT(joules(p.by_phase), UnorderedElementsAre(Pair("forward", DoubleNear(60, 1)),
                                                       Pair("backward", DoubleNear(45, 1)),
                                                       Pair("optimizer", DoubleNear(7.5, 0.2)),
                                                       Pair("(no phase)", DoubleNear(7.5, 0.2))));
  EXPECT_EQ(p.by_phase[0].count, 10u);
  EXPECT_EQ(p.by_phase[1].count, 5u);
  EXPECT_NEAR(seconds(p.by_phase[1].busy), 0.75, 1e-9);
  Energy sum;
  for (const auto& row : p.by_phase) sum += row.energy->energy;
  EXPECT_EQ(sum, p.kernels);
}

TEST(LayerTime, WithoutCpuTimesPhasesHaveTheirWallTime) {
  CpuRun run;
  run.outside(model::Phase::kBackward, 5, 4, 0);
  const auto p = run.profile(0);
  EXPECT_NEAR(joules(p.by_phase).at("forward"), 0.2 * 120, 2);
  EXPECT_NEAR(joules(p.by_phase).at("backward"), 0.4 * 120, 2);
  EXPECT_NEAR(joules(p.by_phase).at("(no phase)"), 0.4 * 120, 2);
}

TEST(LayerTime, WithoutCpuTimesItIsWallTimeThatCounts) {
  const auto p = CpuRun().profile(0);
  ASSERT_EQ(p.by_layer.size(), 3u);
  EXPECT_NEAR(p.by_layer[2].energy->energy.joules(), 0.8 * 120, 2);
}

TEST(LayerTime, OtherProgramsHaveTheirPart) {
  const auto p = CpuRun(4).profile(8);
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 60, 2);
}

// Another program keeps two cores busy all the time.
TEST(LayerTime, RareReadingsOfProcessesDoNotReduceIt) {
  CpuRun run;
  auto& readings = run.recording.process_readings;
  readings.processes = {{model::ProcessId{1}, at(2), {}, {}, {}, {}, {}},
                        {model::ProcessId{1}, at(14), 8s, {}, {}, {}, {}}};
  readings.machine = {{at(2), {}, {}, 0}, {at(14), 8s + 24s, 96s, 0}};
  const auto p = run.profile(8, 10);
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 120 * 8.0 / 12, 3);
}

// The program reports the times of its layers for two seconds at once.
TEST(LayerTime, PartsAddUpToTheWhole) {
  CpuRun run;
  const auto whole = run.profile(8, 10);
  const auto begin = *run.recording.run.work_begin;
  Energy measured, layers;
  std::uint64_t count = 0;
  for (const auto& part :
       {Part{7s, 8500ms}, Part{8500ms, 9100ms}, Part{9100ms, 9130ms}, Part{9130ms, 10s}}) {
    const auto p = only_activity(run.recording, part);
    ASSERT_EQ(p.by_layer.size(), whole.by_layer.size());
    EXPECT_GE(p.begin, begin + *part.from);
    EXPECT_LE(p.end, begin + *part.to);
    measured += p.measured.energy;
    layers += p.by_layer[0].inclusive->energy;
    count += p.by_layer[1].count;
  }
  EXPECT_NEAR(measured.joules(), whole.measured.energy.joules(), 0.1);
  EXPECT_NEAR(layers.joules(), whole.by_layer[0].inclusive->energy.joules(), 1);
  EXPECT_EQ(count, whole.by_layer[1].count);
}

// All that the CPU drew while the program used it, and none of its sleep.
TEST(LayerTime, WithoutAnIdlePowerItIsInTheLayers) {
  const auto p = CpuRun(0, false).profile(8);
  EXPECT_FALSE(p.idle_power);
  EXPECT_THAT(p.warnings, testing::Contains(testing::HasSubstr("idle power is not known")));
  EXPECT_NEAR(p.by_layer[0].inclusive->energy.joules(), 200, 4);
  EXPECT_NEAR(p.unattributed.joules(), 8 * 40, 4);
}

}  // namespace
}  // namespace jouleprof::analysis
