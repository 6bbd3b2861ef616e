#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/ranks_run_test.h"
#include "analysis/run.h"
#include "model/activity/activity_codec.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

model::CollectiveProfile collectives(const model::Recording& recording, const Part& part = {}) {
  const analysis::Run run(recording);
  const auto& made = run.collectives(part);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(model::CollectiveProfile{});
}

TEST(CollectiveKind, IsReadFromTheKernelsName) {
  using model::collective_kind;
  EXPECT_EQ(collective_kind(kAllReduce), "AllReduce");
  EXPECT_EQ(collective_kind("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            "AllGather");
  EXPECT_EQ(collective_kind("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclDevComm*, ulong)"),
            "ReduceScatter");
  EXPECT_EQ(collective_kind("_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE"),
            "SendRecv");
  EXPECT_EQ(collective_kind("ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16"), "AllReduce");
  EXPECT_EQ(collective_kind("void vllm::cross_device_reduce_1stage<half, 2>"), "AllReduce");
  EXPECT_EQ(collective_kind("nvshmemi_barrier_kernel"), "other");
  EXPECT_EQ(collective_kind("void gemm(float*)"), "");
}

TEST(Collectives, TimesAreThoseOfTheSimulatedRanks) {
  const auto made = simulate({});
  const auto found = collectives(made.recording);
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_THAT(found.problems, IsEmpty());
  for (std::size_t r = 0; r < 2; ++r) {
    const auto& rank = found.ranks[r];
    EXPECT_EQ(rank.rank.global, r);
    EXPECT_EQ(rank.device, "gpu" + std::to_string(r));
    EXPECT_EQ(rank.calls, 160U);
    EXPECT_EQ(rank.matched, 160U);
    EXPECT_NEAR(seconds(rank.waiting), made.waiting[r], 1e-5);
    EXPECT_NEAR(seconds(rank.transfer), made.transfer[r], 1e-5);
    EXPECT_EQ(rank.unsplit, Duration{});
    EXPECT_EQ(rank.last, made.last[r]);
    EXPECT_NEAR(seconds(rank.waited_for), made.waited_for[r], 1e-5);
    ASSERT_EQ(rank.kinds.size(), 1U);
    EXPECT_EQ(rank.kinds[0].name, "AllReduce");
  }
  EXPECT_EQ(found.straggler()->rank.global, 1U);
}

TEST(Collectives, EnergyIsTheKernelsDividedByTimeToTheMicrojoule) {
  const auto made = simulate({});
  const analysis::Run run(made.recording);
  const auto found = collectives(made.recording);
  Energy waiting;
  Energy waited_for;
  for (std::size_t r = 0; r < 2; ++r) {
    const auto& rank = found.ranks[r];
    ASSERT_TRUE(rank.waiting_energy);
    const auto& activity = (*run.activity())[r];
    const auto row = std::find_if(activity.by_kernel.begin(), activity.by_kernel.end(),
                                  [](const auto& k) { return k.kernel->name == kAllReduce; });
    ASSERT_NE(row, activity.by_kernel.end());
    EXPECT_EQ(
        rank.waiting_energy->energy + rank.transfer_energy->energy + rank.unsplit_energy->energy,
        row->energy->energy);
    const double share = made.waiting[r] / (made.waiting[r] + made.transfer[r]);
    const double joules = share * made.collective_joules[r];
    EXPECT_NEAR(rank.waiting_energy->energy.joules(), joules, 0.05 * joules + 1);
    EXPECT_LE(rank.waiting_energy->low().joules(), joules);
    EXPECT_GE(rank.waiting_energy->high().joules(), joules);
    EXPECT_EQ(rank.waiting_energy->provenance, model::Provenance::kEstimated);
    waiting += rank.waiting_energy->energy;
    waited_for += rank.waited_for_energy.value_or(Energy{});
  }
  EXPECT_EQ(waiting, waited_for);
}

TEST(Collectives, ProcessesKernelsSumToTheirEnergy) {
  const analysis::Run run(simulate({.slower = {1, 1.2, 0.8}}).recording);
  for (const auto& activity : *run.activity()) {
    for (const auto& process : activity.by_process) {
      Energy sum;
      for (const auto& kernel : process.by_kernel) sum += kernel.energy;
      EXPECT_EQ(sum, process.kernels);
    }
  }
}

TEST(Collectives, ARankWithoutATraceIsNamed) {
  auto recording = simulate({.slower = {1, 1, 1}}).recording;
  recording.traces.erase(recording.traces.begin() + 1);
  const auto found = collectives(recording);
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("no collectives of rank 1 of 3 were traced")));
  EXPECT_TRUE(found.has_split());
}

TEST(Collectives, OfOneRankAloneAreNotSplit) {
  auto recording = simulate({}).recording;
  recording.traces.pop_back();
  const auto found = collectives(recording);
  ASSERT_EQ(found.ranks.size(), 1U);
  EXPECT_FALSE(found.has_split());
  EXPECT_EQ(found.ranks[0].matched, 0U);
  EXPECT_GT(found.ranks[0].unsplit, Duration{});
  ASSERT_TRUE(found.ranks[0].unsplit_energy);
  EXPECT_EQ(found.ranks[0].waiting_energy->energy, Energy{});
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("rank 1 of 2"), HasSubstr("of only one rank")));
}

// Turns one rank's collectives into others.
void change_calls(model::Trace& trace, auto change) {
  std::size_t n = 0;
  for (auto& chunk : trace.chunks) {
    if (chunk.kind != model::ChunkKind::kCollectives) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    model::ActivityEncoder encoder;
    for (model::EventEntry e; decoder.next(e);) {
      if (change(n++, e)) encoder.add(e);
    }
    chunk.bytes = encoder.take();
  }
}

TEST(Collectives, AMissingRecordIsAProblemAndNoGuess) {
  auto recording = simulate({}).recording;
  change_calls(recording.traces[1], [](std::size_t n, auto&) { return n != 10; });
  const auto found = collectives(recording);
  EXPECT_FALSE(found.has_split());
  EXPECT_EQ(found.ranks[0].matched, 0U);
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("are not one operation each")));
}

TEST(Collectives, AnotherOrderOfOperationsIsAProblem) {
  auto recording = simulate({}).recording;
  recording.traces[1].classes.push_back(recording.traces[1].classes[1]);
  recording.traces[1].classes[2].name = "ncclDevKernel_AllGather_RING_LL";
  change_calls(recording.traces[1], [](std::size_t n, auto& e) {
    if (n == 3) e.kernel_class = 2;
    return true;
  });
  const auto found = collectives(recording);
  EXPECT_FALSE(found.has_split());
  EXPECT_THAT(found.problems,
              ElementsAre(HasSubstr("4 is AllReduce on rank 0 and AllGather on rank 1")));
}

TEST(Collectives, CallsAfterTheLastCommonOneAreCountedApart) {
  auto recording = simulate({}).recording;
  change_calls(recording.traces[1], [](std::size_t n, auto&) { return n < 150; });
  const auto found = collectives(recording);
  EXPECT_EQ(found.ranks[0].matched, 150U);
  EXPECT_EQ(found.ranks[0].calls, 160U);
  EXPECT_GT(found.ranks[0].unsplit, Duration{});
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("rank 0 ran 10 collectives")));
}

TEST(Collectives, OperationsThatNeedNotWaitAreNotSplit) {
  auto recording = simulate({}).recording;
  for (auto& trace : recording.traces) trace.classes[1].name = "ncclDevKernel_Broadcast_RING_LL";
  const auto found = collectives(recording);
  EXPECT_FALSE(found.has_split());
  EXPECT_EQ(found.ranks[0].matched, 0U);
  EXPECT_EQ(found.ranks[0].kinds[0].name, "Broadcast");
  EXPECT_GT(found.ranks[0].unsplit_energy->energy, Energy{});
}

TEST(Collectives, TheSpreadOfEndsWidensTheInterval) {
  const auto exact = collectives(simulate({}).recording);
  EXPECT_EQ(exact.end_spread, Duration{});
  const auto shifted = collectives(simulate({.clock_offset = 200e-6}).recording);
  ASSERT_TRUE(shifted.has_split());
  EXPECT_NEAR(seconds(*shifted.end_spread), 200e-6, 1e-8);
  // 150 W for 0.2 ms in each of 160 calls.
  EXPECT_NEAR(shifted.ranks[1].waiting_energy->repeatability.joules() -
                  exact.ranks[1].waiting_energy->repeatability.joules(),
              4.8, 1.2);
}

TEST(Collectives, TwoAttemptsOfARankAreNotMatched) {
  auto recording = simulate({}).recording;
  recording.traces[1].rank.global = 0;
  const auto found = collectives(recording);
  EXPECT_FALSE(found.has_split());
  EXPECT_THAT(found.problems, testing::Contains(HasSubstr("several traced processes are rank 0")));
}

TEST(Collectives, ProcessesWithoutNumbersAreMatchedToo) {
  auto recording = simulate({}).recording;
  for (auto& trace : recording.traces) trace.rank = {};
  const auto found = collectives(recording);
  EXPECT_TRUE(found.has_split());
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST(Collectives, FindingsHaveTheSameFigures) {
  const auto made = simulate({.slower = {1, 3}});
  const analysis::Run run(made.recording);
  const auto& findings = run.profile()->findings;
  const auto waiting = std::find_if(findings.begin(), findings.end(), [](const auto& f) {
    return f.code == std::string("collective_waiting");
  });
  ASSERT_NE(waiting, findings.end());
  EXPECT_EQ(waiting->device, "gpu0");
  EXPECT_EQ(waiting->energy.energy, run.collectives()->ranks[0].waiting_energy->energy);
  EXPECT_THAT(waiting->text, HasSubstr("longest for rank 1"));
}

TEST(Collectives, APartHasTheCallsThatBeginInIt) {
  const auto made = simulate({});
  const auto whole = collectives(made.recording);
  const auto part = collectives(made.recording, {std::chrono::seconds{2}, std::chrono::seconds{5}});
  EXPECT_GT(part.ranks[0].calls, 20U);
  EXPECT_LT(part.ranks[0].calls, whole.ranks[0].calls / 2);
  EXPECT_TRUE(part.has_split());
}

TEST(Collectives, DamagedChunksAreAnError) {
  auto recording = simulate({.steps = 20}).recording;
  for (auto& chunk : recording.traces[0].chunks) {
    if (chunk.kind == model::ChunkKind::kCollectives) chunk.bytes = "\xFF";
  }
  const analysis::Run run(recording);
  ASSERT_FALSE(run.collectives());
  EXPECT_EQ(run.collectives().error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::analysis
