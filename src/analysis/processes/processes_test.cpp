#include "analysis/processes/processes.h"

#include <gtest/gtest.h>

#include <numeric>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::kGpu0;
using namespace std::chrono_literals;
using model::DomainKind;
using model::ProcessId;

// Ten seconds on four CPUs, one reading a second.
struct Machine {
  model::Recording recording;
  Machine() {
    for (int t = 0; t <= 10; ++t) {
      recording.process_readings.machine.push_back({at(t), 2s * t, 4s * t, 0});
    }
  }
  void add(std::uint32_t id, pid_t pid, double start, bool in_tree = true) {
    recording.processes.push_back({ProcessId{id}, pid, {}, 1, "p", "", at(start), {}, in_tree});
  }
  void read(std::uint32_t id, double t, double cpu, double children = 0) {
    recording.process_readings.processes.push_back(
        {ProcessId{id}, at(t), duration_of(cpu), duration_of(children), {}, {}, {}});
  }
  // 60 W above idle over [from, to].
  DomainSplit split(DomainKind kind, double from = 0, double to = 10) const {
    const ProcessSplitter splitter(recording, at(from), at(to));
    DomainEnergy energy;
    energy.domain = {kGpu0, kind, "d", "", "", {}, true, ""};
    energy.active = Energy::joules(60 * (to - from)) + Energy::microjoules(7);
    energy.part = [](HostTime a, HostTime b) { return Power::watts(60) * (b - a); };
    const DomainSplit out = splitter.split(energy);
    const Energy sum = std::accumulate(out.shares.begin(), out.shares.end(), Energy{}) +
                       out.others + out.unattributed;
    EXPECT_EQ(sum, energy.active);
    return out;
  }
};

TEST(Processes, ShareByCpuTimeAndTheRestIsOfOthers) {
  Machine m;
  m.add(1, 10, 0);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 0.5 * t);
  const auto split = m.split(DomainKind::kDram);
  EXPECT_NEAR(split.shares[0].joules(), 150, 0.01);
  EXPECT_NEAR(split.others.joules(), 450, 0.01);
  EXPECT_EQ(split.unattributed, Energy{});
}

TEST(Processes, BeginAndEndWithinTheSpan) {
  Machine m;
  m.add(1, 10, 2.5);
  m.read(1, 3, 0.5);
  m.read(1, 4, 1.5);  // its last reading
  const auto split = m.split(DomainKind::kCpu);
  EXPECT_NEAR(split.shares[0].joules(), 60 * 1.5 / 2, 0.01);
}

TEST(Processes, CpuTimeBeforeAttachingDoesNotCount) {
  Machine m;
  m.add(1, 10, -1000);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 500 + 1.0 * t);
  const ProcessSplitter splitter(m.recording, at(0), at(10));
  EXPECT_NEAR(seconds(*splitter.use().cpu_time[0]), 10, 1e-6);
  EXPECT_NEAR(m.split(DomainKind::kCpu).shares[0].joules(), 300, 0.01);
}

TEST(Processes, CpuTimeThatDecreasesNeverReducesTheSum) {
  Machine m;
  m.add(1, 10, 0);
  const double cpu[] = {0, 1, 2, 0.5, 1.5, 2.5};
  for (int t = 0; t < 6; ++t) m.read(1, t, cpu[t]);
  const ProcessSplitter splitter(m.recording, at(0), at(10));
  EXPECT_NEAR(seconds(*splitter.use().cpu_time[0]), 4, 1e-6);
}

TEST(Processes, AReusedPidIsTwoProcesses) {
  Machine m;
  m.add(1, 10, 0);
  m.add(2, 10, 5);
  for (int t = 0; t <= 4; ++t) m.read(1, t, 1.0 * t);
  for (int t = 5; t <= 10; ++t) m.read(2, t, 0.5 * (t - 5));
  const auto split = m.split(DomainKind::kCpu);
  EXPECT_NEAR(split.shares[0].joules(), 30 * 4, 0.01);
  EXPECT_NEAR(split.shares[1].joules(), 30 * 2.5, 0.01);
}

TEST(Processes, UnseenChildrenCountForTheirParent) {
  Machine m;
  m.add(1, 10, 0);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 0.1 * t, 0.9 * t);
  EXPECT_NEAR(m.split(DomainKind::kCpu).shares[0].joules(), 300, 0.01);
}

// A command that sleeps has less CPU time than its readings show. It has some energy all the same,
// and that is not more than the others' of so many ticks.
TEST(Processes, TimeBelowATickIsInTheCommandsBounds) {
  Machine m;
  m.add(1, 10, 0.5);
  m.read(1, 1, 0);
  m.read(1, 9, 0);
  const auto split = m.split(DomainKind::kCpu);
  EXPECT_EQ(split.shares[0], Energy{});
  ASSERT_TRUE(split.command_bounds);
  EXPECT_EQ(split.command_bounds->low, Energy{});
  // 60 W are of 2 s of CPU time a second: 0.04 s of it.
  EXPECT_NEAR(split.command_bounds->high.joules(), 1.2, 0.01);
}

TEST(Processes, BoundsOfCpuTimeHoldTheCostliestSliceAndTheReadingsBefore) {
  Machine m;
  // In the last second the others used 0.02 s and are charged with 60 J.
  m.recording.process_readings.machine.back().busy_cpu_time = 18s + 20ms;
  m.add(1, 10, -100);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 7 + 0.5 * std::min(t, 9));
  const auto split = m.split(DomainKind::kCpu);
  const double own = 60 * 9 / 4.0;
  EXPECT_NEAR(split.shares[0].joules(), own, 0.1);
  ASSERT_TRUE(split.command_bounds);
  EXPECT_NEAR(split.command_bounds->high.joules(), own + 60 + 0.02 * 30, 0.1);
  EXPECT_NEAR(split.command_bounds->low.joules(), own * (1 - 0.04 / 4.5), 0.1);
}

TEST(Processes, WithoutTheMachinesTimeAllIsUnattributed) {
  Machine m;
  m.recording.process_readings.machine.clear();
  m.add(1, 10, 0);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 1.0 * t);
  const auto split = m.split(DomainKind::kCpu);
  EXPECT_EQ(split.shares[0], Energy{});
  EXPECT_NEAR(split.unattributed.joules(), 600, 0.01);
}

TEST(Processes, AloneOnAGpuItNeedsNoUtilisation) {
  Machine m;
  m.add(1, 10, 0);
  m.add(2, 11, 6, false);
  auto& readings = m.recording.process_readings.gpu_processes;
  // Its utilisation is read once at first, and in every round while another process shares the GPU.
  for (int t = 1; t <= 6; ++t) {
    readings.push_back(
        {ProcessId{1}, kGpu0, at(t), t == 1 ? std::optional(0.1) : std::nullopt, {}});
  }
  for (int t = 7; t <= 10; ++t) {
    readings.push_back({ProcessId{1}, kGpu0, at(t), 0.25, {}});
    readings.push_back({ProcessId{2}, kGpu0, at(t), 0.75, {}});
  }
  const auto split = m.split(DomainKind::kGpu);
  EXPECT_NEAR(split.shares[0].joules(), 60 * 6 + 15 * 4, 0.01);
  EXPECT_NEAR(split.others.joules(), 45 * 4, 0.01);
  EXPECT_EQ(split.unattributed, Energy{});
}

TEST(Processes, ListedBeforeAndAfterAPauseOfTheListItRanInBetween) {
  for (const double pause : {3.0, 6.0}) {
    Machine m;
    m.add(1, 10, 0);
    for (double t = 0.5; t < 11; t += 1) {
      if (t > 3 && t < 2.5 + pause) continue;
      m.recording.process_readings.gpu_processes.push_back({ProcessId{1}, kGpu0, at(t), {}, {}});
    }
    // In a long one, another may have run, too.
    const auto split = m.split(DomainKind::kGpu);
    EXPECT_NEAR(split.shares[0].joules(), pause < 4 ? 600 : 600 - 60 * pause, 61);
    EXPECT_NEAR((split.shares[0] + split.unattributed).joules(), 600, 0.01);
    EXPECT_LE(split.bounds[0].low.joules(), 600 - 60 * pause + 61);
    EXPECT_NEAR(split.bounds[0].high.joules(), 600, 61);
  }
}

TEST(Processes, MeanUtilisationIsWeightedByItsTime) {
  Machine m;
  m.add(1, 10, 0);
  auto& readings = m.recording.process_readings.gpu_processes;
  readings.push_back({ProcessId{1}, kGpu0, at(1), 0.1, {}});
  for (int t = 2; t <= 8; ++t) readings.push_back({ProcessId{1}, kGpu0, at(t), {}, {}});
  readings.push_back({ProcessId{1}, kGpu0, at(9), 0.9, {}});
  const ProcessSplitter splitter(m.recording, at(0), at(10));
  EXPECT_NEAR(*splitter.use().compute_utilisation[0], (0.1 * 1 + 0.9 * 8) / 9, 1e-9);
}

TEST(Processes, AnEmptyGpuIsUnattributed) {
  Machine m;
  m.add(1, 10, 0);
  // On the GPU from 3 s to 6 s, read every second.
  for (int t = 4; t <= 6; ++t) {
    m.recording.process_readings.gpu_processes.push_back({ProcessId{1}, kGpu0, at(t), 0.4, {}});
  }
  const auto split = m.split(DomainKind::kGpu);
  EXPECT_NEAR(split.shares[0].joules(), 60 * 5, 61);
  EXPECT_GT(split.unattributed.joules(), 200);
}

TEST(Processes, WhenAnotherHeldTheBoardIsKnownToItsLists) {
  Machine m;
  m.add(1, 10, 0);
  m.add(2, 20, 4, false);
  auto& readings = m.recording.process_readings.gpu_processes;
  for (int t = 0; t <= 10; ++t) {
    readings.push_back({ProcessId{1}, kGpu0, at(t), {}, {}});
    if (t == 5 || t == 6) readings.push_back({ProcessId{2}, kGpu0, at(t), {}, {}});
  }
  const model::Domain board{kGpu0, DomainKind::kGpu, "gpu0", "", "", {}, true, ""};
  const ProcessSplitter splitter(m.recording, at(0), at(10));
  const auto split =
      splitter.split_held(board, Energy::joules(400), [](HostTime a, HostTime b) { return b - a; });
  // It held the board from 5 to 6 s, and can have from 4 to 7 s: 1 to 3 s of 10 s.
  EXPECT_NEAR(split.shares[0].joules(), 340, 0.01);
  ASSERT_EQ(split.bounds.size(), 2u);
  EXPECT_NEAR(split.bounds[0].low.joules(), 340, 0.01);
  EXPECT_NEAR(split.bounds[0].high.joules(), 380, 0.01);
  EXPECT_NEAR(split.bounds[1].low.joules(), 20, 0.01);
  EXPECT_NEAR(split.bounds[1].high.joules(), 60, 0.01);
  EXPECT_EQ(split.command_bounds.low, split.bounds[0].low);
  EXPECT_EQ(split.command_bounds.high, split.bounds[0].high);
}

TEST(Processes, PlatformsAreUnattributed) {
  Machine m;
  m.add(1, 10, 0);
  for (int t = 0; t <= 10; ++t) m.read(1, t, 1.0 * t);
  EXPECT_NEAR(m.split(DomainKind::kPlatform).unattributed.joules(), 600, 0.01);
}

}  // namespace
}  // namespace jouleprof::analysis
