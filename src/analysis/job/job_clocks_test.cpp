// Two machines whose clocks differ, with ranks that wait for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/job/job.h"
#include "analysis/ranks_run_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::RanksRun;
using simulated::SimulatedRanks;
using Named = JobBuilder::Named;

// A machine's steady clock shows `offset` + (1 + drift) t at time t; its wall clock is wrong, too.
struct Clock {
  double offset = 0;
  double drift = 0;
  double wall_error = 0;

  HostTime at(HostTime t) const {
    const double true_seconds = seconds(t.time_since_epoch());
    return t + duration_of(offset + drift * true_seconds);
  }
};

// The part of the simulated job that rank `k` alone recorded, by this clock.
model::Recording of_rank(const SimulatedRanks& ranks, std::uint32_t k, const Clock& clock) {
  const auto& whole = ranks.recording;
  model::Recording r;
  r.run = whole.run;
  r.run.host = "node" + std::to_string(k);
  r.run.boot_id = "boot" + std::to_string(k);
  r.run.rank = whole.traces[k].rank;
  r.run.work_begin = clock.at(*whole.run.work_begin);
  r.run.work_end = clock.at(*whole.run.work_end);
  for (const double t : {0.0, 20.0}) {
    const RealTime real{std::chrono::seconds{1'700'000'000} + duration_of(t + clock.wall_error)};
    r.clock_points.push_back({clock.at(simulated::at(t)), real, {}});
  }
  r.domains = {whole.domains[k]};
  r.sensors = {whole.sensors[2 * k], whole.sensors[2 * k + 1]};
  for (auto reading : whole.readings.powers) {
    if (reading.sensor != r.sensors[1].id) continue;
    reading.at = clock.at(reading.at);
    r.readings.powers.push_back(reading);
  }
  for (auto reading : whole.readings.counters) {
    if (reading.sensor != r.sensors[0].id) continue;
    reading.before = clock.at(reading.before);
    reading.after = clock.at(reading.after);
    r.readings.counters.push_back(reading);
  }
  for (const auto& span : whole.idle_spans) {
    r.idle_spans.push_back({clock.at(span.begin), clock.at(span.end)});
  }
  r.traces = {whole.traces[k]};
  for (auto& chunk : r.traces[0].chunks) {
    chunk.begin = clock.at(chunk.begin);
    chunk.end = clock.at(chunk.end);
  }
  r.processes = {whole.processes[k]};
  r.processes[0].start = clock.at(r.processes[0].start);
  r.processes[0].end = clock.at(*r.processes[0].end);
  return r;
}

Job job_of(const std::vector<model::Recording>& recordings) {
  JobBuilder builder;
  for (const auto& recording : recordings) {
    std::vector<Named> named;
    named.push_back({recording.run.host + ".jprof", Run(recording)});
    const auto added = builder.add_host(named);
    EXPECT_TRUE(added) << added.error().message;
  }
  return std::move(builder).finish();
}

const Clock kSecond{-1234.567, 40e-6, 0.25};

TEST(JobClocks, AreAlignedWithinTheStatedError) {
  const auto ranks = simulated::simulate({});
  for (const Clock& second : {kSecond, Clock{5e5, -80e-6, -3}, Clock{}}) {
    const Job job = job_of({of_rank(ranks, 0, {}), of_rank(ranks, 1, second)});
    // Times of day of a machine whose clock is seconds off are wrong; the rest is not.
    ASSERT_EQ(job.warnings.size(), std::abs(second.wall_error) > 1 ? 1u : 0u);
    EXPECT_TRUE(job.is_aligned);
    EXPECT_FALSE(job.hosts[0].clock);
    ASSERT_TRUE(job.hosts[1].clock);
    const auto& clock = *job.hosts[1].clock;
    EXPECT_EQ(clock.reference, "node0");
    EXPECT_NEAR(clock.offset_seconds, second.wall_error, clock.error_seconds);
    EXPECT_NEAR(clock.drift, second.drift, 1e-6);
    EXPECT_LE(clock.error_seconds, 0.011);  // transfers of 10 ms
    EXPECT_LT(clock.residual_seconds, 1e-4);
    EXPECT_EQ(clock.calls, 160u);
    const auto& run = ranks.recording.run;
    EXPECT_NEAR(seconds(*job.elapsed), seconds(*run.work_end - *run.work_begin), 1e-4);
  }
}

// Shorter transfers bound the error more closely.
TEST(JobClocks, StateASmallErrorWhereTransfersAreShort) {
  RanksRun run;
  run.transfer = 0.0005;
  const auto ranks = simulated::simulate(run);
  const Job job = job_of({of_rank(ranks, 0, {}), of_rank(ranks, 1, kSecond)});
  ASSERT_TRUE(job.hosts[1].clock);
  EXPECT_LT(job.hosts[1].clock->error_seconds, 0.001);
}

// As if one machine had recorded both.
TEST(JobClocks, RanksWaitForRanksOfOtherMachines) {
  const auto ranks = simulated::simulate({});
  const Job job = job_of({of_rank(ranks, 0, {}), of_rank(ranks, 1, kSecond)});
  ASSERT_EQ(job.ranks.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    ASSERT_TRUE(job.ranks[k].waiting) << k;
    EXPECT_NEAR(seconds(*job.ranks[k].waiting), ranks.waiting[k], 0.01 * ranks.waiting[0]) << k;
    EXPECT_NEAR(seconds(*job.ranks[k].transfer), ranks.transfer[k], 0.01 * ranks.transfer[k]) << k;
    EXPECT_TRUE(job.ranks[k].waiting_energy);
  }
}

TEST(JobClocks, OfOneMachineAloneAreNotCompared) {
  const auto ranks = simulated::simulate({});
  const Job job = job_of({of_rank(ranks, 0, {})});
  EXPECT_FALSE(job.is_aligned);
  EXPECT_FALSE(job.hosts[0].clock);
}

// A machine whose trace lacks its first operations would be matched with the wrong ones.
TEST(JobClocks, AreNotAlignedByOperationsThatAreNotTheSame) {
  const auto ranks = simulated::simulate({});
  auto second = of_rank(ranks, 1, kSecond);
  for (auto& c : second.traces[0].classes) {
    const auto at = c.name.find("AllReduce");
    if (at != c.name.npos) c.name.replace(at, 9, "AllGather");
  }
  const Job job = job_of({of_rank(ranks, 0, {}), second});
  EXPECT_FALSE(job.is_aligned);
  EXPECT_THAT(job.warnings, testing::Contains(testing::HasSubstr("it ran other collectives")));
  EXPECT_TRUE(job.elapsed);  // by the wall clocks
}

TEST(JobClocks, AreNotAlignedWhereOperationsAreMissing) {
  const auto ranks = simulated::simulate({});
  auto second = of_rank(ranks, 1, kSecond);
  auto& chunks = second.traces[0].chunks;
  const auto first = std::find_if(chunks.begin(), chunks.end(), [](const auto& chunk) {
    return chunk.kind == model::ChunkKind::kCollectives;
  });
  ASSERT_NE(first, chunks.end());
  chunks.erase(first);
  const Job job = job_of({of_rank(ranks, 0, {}), second});
  EXPECT_FALSE(job.is_aligned);
  EXPECT_THAT(job.warnings, testing::Contains(testing::HasSubstr("clocks are not aligned")));
}

}  // namespace
}  // namespace jouleprof::analysis
