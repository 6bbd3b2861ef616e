#include "analysis/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::Recorded;
using testing::ElementsAre;
using Named = JobBuilder::Named;

// A GPU at 500 W and a package at 100 W from 3 s to 13 s; the work is a part of it.
model::Recording recorded(double from, double to, const std::string& host = "node1",
                          const std::string& boot = "boot1", const std::string& uuid = "GPU-1") {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  run.recording.run.work_begin = at(from);
  run.recording.run.work_end = at(to);
  run.recording.run.host = host;
  run.recording.run.boot_id = boot;
  run.recording.domains[0].uuid = uuid;
  return std::move(run.recording);
}

std::vector<Named> named(std::vector<model::Recording> recordings) {
  std::vector<Named> all;
  for (auto& recording : recordings) {
    all.push_back({std::to_string(all.size()) + ".jprof", Run(std::move(recording))});
  }
  return all;
}

Job job_of(std::vector<std::vector<model::Recording>> hosts) {
  JobBuilder builder;
  for (auto& host : hosts) {
    const auto added = builder.add_host(named(std::move(host)));
    EXPECT_TRUE(added) << added.error().message;
  }
  return std::move(builder).finish();
}

Energy energy_of(const model::Recording& recording) {
  Energy sum;
  const auto profile = profile_of(recording);
  for (const auto& d : profile->domains) sum += d.energy->energy;
  return sum;
}

TEST(Job, IsTheSumOfItsHostsToTheMicrojoule) {
  const auto a = recorded(3, 13);
  const auto b = recorded(4, 9, "node2", "boot2", "GPU-2");
  const Job job = job_of({{a}, {b}});
  ASSERT_EQ(job.hosts.size(), 2u);
  EXPECT_EQ(job.hosts[0].total->energy, energy_of(a));
  EXPECT_EQ(job.hosts[1].total->energy, energy_of(b));
  EXPECT_EQ(job.total->energy, energy_of(a) + energy_of(b));
  EXPECT_EQ(job.recordings, 2u);
  EXPECT_EQ(job.elapsed, std::chrono::seconds{10});
  // The order does not matter.
  EXPECT_EQ(job_of({{b}, {a}}).hosts[0].host, "node1");
}

TEST(Job, EightRecordersOfOneHostCountOnce) {
  const auto a = recorded(3, 13);
  const Job job = job_of({{a, a, a, a, a, a, a, a}});
  ASSERT_EQ(job.hosts.size(), 1u);
  EXPECT_EQ(job.total->energy, energy_of(a));
  EXPECT_EQ(job.hosts[0].covered, std::chrono::seconds{10});
  EXPECT_EQ(job.ranks.size(), 8u);
}

// The edges of the work are times at which a timeline lets power change abruptly. Windows give all
// recordings those of each other.
model::Recording with_edges(model::Recording recording, const std::vector<double>& edges) {
  for (const double t : edges) {
    model::Window window;
    window.name = "edge";
    window.begin = at(t);
    window.end = at(t);
    recording.windows.push_back(std::move(window));
  }
  return recording;
}

TEST(Job, OverlappingRecordingsCountTheUnionOfTheirTimesToTheMicrojoule) {
  const std::vector<double> edges{3, 4, 5, 6, 8, 13};
  const auto part = [&](double from, double to) { return with_edges(recorded(from, to), edges); };
  const Job job = job_of({{part(6, 13), part(3, 8), part(4, 5)}});
  EXPECT_EQ(job.hosts[0].covered, std::chrono::seconds{10});
  EXPECT_EQ(job.total->energy, energy_of(part(3, 13)));
  EXPECT_NEAR(job.total->energy.joules(), 6000, 12);
  EXPECT_TRUE(job.warnings.empty());
}

// Recordings with other edges fit slightly different power to the same readings: the job's energy
// is that of each time by the first recording that covers it.
TEST(Job, EachTimeHasTheEnergyOfTheFirstRecordingThatCoversIt) {
  const Job job = job_of({{recorded(6, 13), recorded(3, 8), recorded(4, 5)}});
  const analysis::Run first(recorded(3, 8));
  const analysis::Run second(recorded(6, 13));
  Energy sum;
  for (const std::size_t domain : {0u, 1u}) {
    sum += first.energy(domain, at(3), at(8))->energy;
    sum += second.energy(domain, at(8), at(13))->energy;
  }
  EXPECT_EQ(job.total->energy, sum);
}

TEST(Job, NamesTimeThatNoRecordingCovers) {
  const Job job = job_of({{recorded(3, 5), recorded(9, 13)}});
  EXPECT_EQ(job.hosts[0].covered, std::chrono::seconds{6});
  EXPECT_NEAR(job.total->energy.joules(), 3600, 12);
  EXPECT_THAT(job.warnings, ElementsAre(testing::HasSubstr("4.000 s between its recordings")));
}

TEST(Job, RanksOfOneHostWithBoardsOfTheirOwnAddUp) {
  const auto a = recorded(3, 13);
  const auto b = recorded(3, 13, "node1", "boot1", "GPU-2");
  const Job job = job_of({{a, b}});
  // Two boards, one package.
  EXPECT_EQ(job.hosts[0].domains.size(), 3u);
  EXPECT_NEAR(job.total->energy.joules(), 11000, 24);
}

TEST(Job, ADomainThatOneRecordingCannotSeeCountsByTheOther) {
  auto blind = recorded(3, 13);
  blind.domains[0].visible = false;
  EXPECT_NEAR(job_of({{blind}}).total->energy.joules(), 1000, 3);
  EXPECT_NEAR(job_of({{blind, recorded(3, 13)}}).total->energy.joules(), 6000, 12);
}

TEST(Job, RanksHaveTheSharesOfTheirProcesses) {
  const auto with_rank = [](std::uint32_t rank) {
    Recorded run;
    run.read_cpu();
    run.add_processes();
    run.recording.run.rank.global = rank;
    run.recording.run.boot_id = "boot" + std::to_string(rank);
    return std::move(run.recording);
  };
  const Job job = job_of({{with_rank(1)}, {with_rank(0)}});
  ASSERT_EQ(job.ranks.size(), 2u);
  EXPECT_EQ(job.ranks[0].rank.global, 0u);
  EXPECT_EQ(job.ranks[1].rank.global, 1u);
  const auto profile = profile_of(with_rank(0));
  Energy shares;
  for (const auto& process : profile->processes) {
    for (const auto& share : process.shares) shares += share.energy;
  }
  EXPECT_EQ(job.ranks[0].energy, shares);
  EXPECT_GT(shares, Energy{});
  EXPECT_EQ(job.without_energy, 2u);  // the GPUs, which were not read
}

TEST(Job, ErrorsOfHostsAddLinearly) {
  const auto a = recorded(3, 13);
  const Job one = job_of({{a}});
  const Job two = job_of({{a}, {recorded(3, 13, "node2", "boot2", "GPU-2")}});
  EXPECT_NEAR(two.total->error.joules(), 2 * one.total->error.joules(), 1e-3);
}

TEST(Job, RejectsRecordingsOfOtherBootsAndWithoutTime) {
  JobBuilder builder;
  const auto mixed = builder.add_host(named({recorded(3, 5), recorded(3, 5, "node1", "boot2")}));
  EXPECT_EQ(mixed.error().code, Errc::kCorrupt);
  EXPECT_EQ(JobBuilder().add_host(named({model::Recording{}})).error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::analysis
