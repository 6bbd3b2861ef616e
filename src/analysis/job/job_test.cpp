#include "analysis/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using model::Measurement;
using simulated::at;
using simulated::kGpu0;
using simulated::Recorded;
using testing::ElementsAre;
using Named = JobBuilder::Named;

// A GPU at 500 W and a package at 100 W from 3 s to 13 s; the work is a part of it.
model::Recording recorded(double from, double to, const std::string& host = "node1",
                          const std::string& boot = "boot1", const std::string& uuid = "GPU-1",
                          double gpu_until = 16) {
  Recorded run;
  run.read_gpu(gpu_until);
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

TEST(Job, WithADeviceThatWasLostIsALowerBound) {
  const auto lost = recorded(3, 13, "node1", "boot1", "GPU-1", 8);
  const Job job = job_of({{lost}, {recorded(3, 13, "node2", "boot2", "GPU-2")}});
  const JobHost& host = job.hosts[0];
  EXPECT_TRUE(host.is_partial);
  EXPECT_TRUE(host.domains[0].is_partial());
  EXPECT_FALSE(host.domains[0].energy);
  EXPECT_NEAR(host.domains[0].least->energy.joules(), 2500, 100);
  ASSERT_EQ(host.domains.size(), 2u);  // the processor, too
  EXPECT_EQ(host.total->energy, host.domains[0].least->energy + host.domains[1].energy->energy);
  EXPECT_FALSE(job.hosts[1].is_partial);
  EXPECT_TRUE(job.is_partial);
  ASSERT_TRUE(job.command);
  EXPECT_TRUE(job.command->is_partial);
  EXPECT_FALSE(job_of({{recorded(3, 13)}}).is_partial);
}

// A time before the loss that several recordings have counts once: 2.5 kJ until 8 s.
TEST(Job, RecordingsOfADeviceThatWasLostCountOnce) {
  const auto until_loss = [](double from, double to) {
    return recorded(from, to, "node1", "boot1", "GPU-1", 8);
  };
  const auto least_of = [](std::vector<model::Recording> recordings) {
    return job_of({std::move(recordings)}).hosts[0].domains[0].least->energy.joules();
  };
  EXPECT_NEAR(least_of({until_loss(3, 13), until_loss(3, 13), until_loss(4, 12)}), 2500, 100);
  EXPECT_NEAR(least_of({until_loss(5, 13), until_loss(3, 12)}), 2500, 100);
  // What a recording that ended before the loss has is energy, and the rest was "more".
  const Job job = job_of({{recorded(3, 6), until_loss(4, 13)}});
  EXPECT_NEAR(job.hosts[0].domains[0].energy->energy.joules(), 1500, 10);
  EXPECT_NEAR(job.hosts[0].domains[0].least->energy.joules(), 1000, 100);
  EXPECT_TRUE(job.hosts[0].domains[0].lacks_time);
  // Another recording has all of it.
  for (const double loss : {4.0, 8.0}) {
    const auto lost = recorded(5, 12, "node1", "boot1", "GPU-1", loss);
    EXPECT_FALSE(job_of({{recorded(3, 13), lost}}).is_partial) << loss;
  }
}

// The energy of a device that one recording lacks is a lower bound, unless others cover its time.
TEST(Job, ADomainThatARecordingHasNoEnergyOfIsALowerBound) {
  const auto without = [](double from, double to) {
    return recorded(from, to, "node1", "boot1", "GPU-1", 0);
  };
  const auto domain_of = [](std::vector<model::Recording> recordings) {
    const Job job = job_of({std::move(recordings)});
    EXPECT_EQ(job.is_partial, job.hosts[0].domains[0].lacks_time);
    return job.hosts[0].domains[0];
  };
  for (const auto& lacks :
       {domain_of({recorded(3, 6), without(6, 13)}), domain_of({without(3, 8), recorded(6, 13)})}) {
    EXPECT_TRUE(lacks.energy);
    EXPECT_TRUE(lacks.lacks_time);
    EXPECT_THAT(lacks.reason, testing::HasSubstr(".jprof: "));
  }
  EXPECT_FALSE(domain_of({recorded(3, 13), without(4, 12)}).lacks_time);
  EXPECT_FALSE(domain_of({without(4, 12), recorded(3, 9), recorded(8, 13)}).lacks_time);
  EXPECT_FALSE(domain_of({without(4, 12)}).lacks_time);
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

TEST(Job, AMachineThatSleptIsNamedAndItsClockDidNotMove) {
  using namespace std::chrono_literals;
  auto slept = recorded(3, 13);
  const RealTime noon{1'800'000'000s};
  slept.clock_points = {{at(1), noon, 5s}, {at(14), noon + 13s + 60s, 65s}};
  auto other = recorded(3, 13, "node2", "boot2", "GPU-2");
  other.clock_points = {{at(1), noon, {}}, {at(14), noon + 13s, {}}};
  const Job job = job_of({{slept}, {other}});
  EXPECT_THAT(job.warnings, ElementsAre(testing::HasSubstr("node1: the machine was suspended for "
                                                           "60.0 s; that time is not in any")));
  EXPECT_EQ(job.hosts[0].clock_change, 0s);
  EXPECT_EQ(job.elapsed, 70s);
  EXPECT_EQ(job.hosts[0].covered, 10s);
  // Before the work began it is of no interest.
  slept.clock_points.insert(slept.clock_points.begin() + 1, {at(2), noon + 61s, 65s});
  const Job awake = job_of({{slept}, {other}});
  EXPECT_THAT(awake.warnings, ElementsAre());
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

Energy sum_of(const Job& job) {
  Energy sum = job.others + job.undivided + job.not_charged;
  for (const auto& share : job.shares) sum += share.charged();
  return sum;
}

model::Recording with_processes(const std::string& slurm_job, const std::string& boot = "boot1",
                                double gpu_until = 16) {
  Recorded run;
  run.read_gpu(gpu_until);
  run.read_cpu();
  run.add_processes();
  run.recording.run.boot_id = boot;
  run.recording.run.rank.job = slurm_job;
  run.recording.domains[0].uuid = "GPU-1";
  return std::move(run.recording);
}

// A rank's share is as open as those of its processes.
TEST(JobRanks, HaveTheBoundsOfTheirProcesses) {
  auto shared = with_processes("7");
  shared.run.rank.global = 3;
  const auto profile = profile_of(shared);
  const Job job = job_of({{shared}});
  Energy low;
  Energy high;
  for (const auto& process : profile->processes) {
    for (const auto& share : process.shares) {
      low += share.bounds ? share.bounds->low : share.energy;
      high += share.bounds ? share.bounds->high : share.energy;
    }
  }
  ASSERT_EQ(job.ranks.size(), 1u);
  EXPECT_EQ(job.ranks[0].bounds.low, low);
  EXPECT_EQ(job.ranks[0].bounds.high, high);
}

TEST(JobShares, SayWhereRestIsUnknown) {
  const Job known = job_of({{with_processes("7")}});
  EXPECT_TRUE(known.shares[0].knows_rest);
  EXPECT_FALSE(known.shares[0].has_unknown_rest);
  EXPECT_TRUE(known.command->rest);
  auto recording = with_processes("7");
  recording.idle_spans.clear();
  const auto profile = profile_of(recording);
  for (const auto& d : profile->domains) ASSERT_FALSE(d.idle_part) << d.domain.device;
  const Job job = job_of({{recording}});
  EXPECT_FALSE(job.shares[0].knows_rest);
  EXPECT_TRUE(job.shares[0].has_unknown_rest);
  ASSERT_TRUE(job.command);
  EXPECT_FALSE(job.command->rest);
}

TEST(Job, RanksNameDevicesWhoseEnergyAboveRestIsUnknown) {
  const auto without = [](model::Recording recording) {
    auto& processes = recording.processes;
    const auto own = std::ranges::find_if(processes, [](const auto& p) { return p.in_tree; });
    recording.process_readings.gpu_processes.push_back({own->id, kGpu0, at(4), 0.5, 1 << 30});
    return job_of({{std::move(recording)}}).ranks.at(0).without;
  };
  EXPECT_THAT(without(with_processes("7")), ElementsAre());
  EXPECT_THAT(without(with_processes("7", "boot1", 8)), ElementsAre("gpu0"));  // it was lost
  auto no_rest = with_processes("7");
  no_rest.idle_spans.clear();
  EXPECT_THAT(without(no_rest), ElementsAre("gpu0", "package-0"));
}

TEST(JobShares, AreTheTotalToTheMicrojoule) {
  const Job job = job_of({{with_processes("7")}, {with_processes("7", "boot2")}});
  ASSERT_EQ(job.shares.size(), 1u);
  EXPECT_EQ(job.shares[0].job, "7");
  EXPECT_EQ(job.shares[0].hosts, 2u);
  EXPECT_EQ(job.shares[0].recorded, std::chrono::seconds{20});
  EXPECT_EQ(sum_of(job), job.total->energy);
  EXPECT_GT(job.shares[0].dynamic, Energy{});
  EXPECT_GT(job.others, Energy{});  // the desktop
  // It used the packages, so that their rest is not the job's; the GPUs' is.
  EXPECT_NEAR(job.not_charged.joules(), 2 * 400, 5);
  EXPECT_NEAR(job.shares[0].rest.joules(), 2 * 1200, 30);
  // No process was seen on the GPUs: their energy is not charged, and not lost.
  EXPECT_NEAR(job.undivided.joules(), 2 * 3800, 40);
  ASSERT_TRUE(job.command);
  EXPECT_EQ(job.command->energy.energy, job.shares[0].charged());
  EXPECT_GE(job.command->high(), job.shares[0].charged() + job.undivided);
}

TEST(JobShares, OfAPartOfAHostHaveThatPartOfTheRestOfItsProcessors) {
  const Job all = job_of({{with_processes("7")}});
  JobBuilder builder(JobRules{0.25});
  ASSERT_TRUE(builder.add_host(named({with_processes("7")})));
  const Job job = std::move(builder).finish();
  EXPECT_EQ(sum_of(job), job.total->energy);
  EXPECT_EQ(job.shares[0].dynamic, all.shares[0].dynamic);
  // Of the package, although others used it; the GPU's is charged in full.
  const auto profile = profile_of(with_processes("7"));
  const Energy rest = *profile->domains[1].idle_part;
  EXPECT_NEAR(job.not_charged.joules(), 0.75 * rest.joules(), 1e-6);
  EXPECT_EQ(job.shares[0].rest, all.shares[0].rest + rest - job.not_charged);
}

TEST(JobShares, CountAProcessOfSeveralRecordingsOnce) {
  const Job one = job_of({{with_processes("7")}});
  const Job two = job_of({{with_processes("7"), with_processes("7")}});
  EXPECT_EQ(two.shares[0].dynamic, one.shares[0].dynamic);
  EXPECT_EQ(sum_of(two), two.total->energy);
  EXPECT_EQ(two.total->energy, one.total->energy);
}

// As after a recorder that was killed.
TEST(JobShares, HaveAProcessOfRecordingsThatFollowOneAnotherInBoth) {
  const auto part = [](double from, double to) {
    auto recording = with_processes("7");
    recording.run.work_begin = at(from);
    recording.run.work_end = at(to);
    return recording;
  };
  const Job whole = job_of({{part(3, 13)}});
  const Job parts = job_of({{part(3, 8), part(8, 13)}});
  EXPECT_NEAR(parts.shares[0].dynamic.joules(), whole.shares[0].dynamic.joules(),
              0.02 * whole.shares[0].dynamic.joules());
  EXPECT_EQ(sum_of(parts), parts.total->energy);
  EXPECT_NEAR(parts.others.joules(), whole.others.joules(), 0.02 * whole.others.joules());
}

TEST(JobShares, TwoJobsOfOneHostShareItsRestOnce) {
  const auto other = [] {
    auto recording = with_processes("8");
    recording.run.work_end = at(8);
    for (auto& process : recording.processes) process.pid += 1000;
    return recording;
  };
  const Job job = job_of({{with_processes("7"), other()}});
  ASSERT_EQ(job.shares.size(), 2u);
  EXPECT_EQ(sum_of(job), job.total->energy);
  // By recorded time: 10 s and 5 s.
  EXPECT_NEAR(job.shares[0].rest.joules(), 2 * job.shares[1].rest.joules(), 1e-5);
}

// A recorder for each rank, as packaging/slurm starts them: to each the other's process is
// another's.
TEST(JobShares, ARankIsNotAlsoOneOfTheOthers) {
  const auto rank = [](std::uint32_t number, const std::string& job) {
    auto recording = with_processes(job);
    recording.run.rank.global = number;
    auto& processes = recording.processes;
    for (auto& process : processes) process.in_tree = false;
    processes[number].in_tree = true;
    return recording;
  };
  ASSERT_GE(rank(0, "7").processes.size(), 2u);
  const Job job = job_of({{rank(0, "7"), rank(1, "7")}});
  EXPECT_EQ(sum_of(job), job.total->energy);
  EXPECT_GE(job.undivided, Energy{});
  EXPECT_EQ(job.others, Energy{});
  const Job two = job_of({{rank(0, "7"), rank(1, "8")}});
  EXPECT_EQ(sum_of(two), two.total->energy);
  EXPECT_GE(two.undivided, Energy{});
  ASSERT_TRUE(two.command);
  EXPECT_LE(two.command->energy.energy, two.total->energy);
}

// One of two processes of equal use that hold the board all along, each in its own recording: to
// each the other's is another's, whose start it reads by its own clock.
model::Recording one_of_two(pid_t own, const std::string& job, double utilisation = -1,
                            double from = 3, double to = 13) {
  auto recording = recorded(from, to);
  recording.run.rank.job = job;
  recording.run.rank.global = static_cast<std::uint32_t>(own - 100);
  for (const pid_t pid : {100, 101}) {
    const auto id = model::ProcessId{static_cast<std::uint32_t>(pid)};
    const bool is_own = pid == own;
    const HostTime start = at(3) + std::chrono::nanoseconds{is_own ? 0 : 40};
    recording.processes.push_back({id, pid, {}, 1, "rank", "", start, {}, is_own});
    for (double t = 3.5; t <= 14; t += 1) {
      auto& readings = recording.process_readings;
      readings.gpu_processes.push_back(
          {id, kGpu0, at(t), utilisation < 0 ? std::nullopt : std::optional(utilisation), 1 << 20});
      readings.processes.push_back({id, at(t), duration_of(0.2 * (t - 3)), {}, {}, {}, {}});
    }
  }
  return recording;
}

// What one recording cannot divide between them is the job's, and so is the rest of the board.
TEST(JobShares, RanksThatShareABoardAreOneFamily) {
  const auto one = profile_of(one_of_two(100, "7"));
  EXPECT_LT(one->domains[0].command->energy.energy, Energy::joules(100));
  for (const double end : {13.0, 8.0}) {
    const Job job = job_of({{one_of_two(100, "7", -1, 3, end), one_of_two(101, "7")}});
    EXPECT_EQ(sum_of(job), job.total->energy);
    ASSERT_EQ(job.shares.size(), 1u);
    EXPECT_NEAR(job.shares[0].dynamic.joules(), 3800, 40) << end;
    EXPECT_NEAR(job.shares[0].rest.joules(), 1200 + 400, 20) << end;  // the board's, the package's
  }
  const Job two = job_of({{one_of_two(100, "7"), one_of_two(101, "8")}});
  EXPECT_EQ(sum_of(two), two.total->energy);
  EXPECT_LT(two.shares[0].dynamic + two.shares[1].dynamic, Energy::joules(100));
}

// The utilisations that each recorder was given contradict the other's.
TEST(JobShares, OfJobsThatShareABoardNeverExceedIt) {
  auto first = one_of_two(100, "7", 0.5);
  auto second = one_of_two(101, "8", 0.5);
  for (auto* recording : {&first, &second}) {
    for (auto& r : recording->process_readings.gpu_processes) {
      const bool is_own = (r.process == model::ProcessId{100}) == (recording == &first);
      r.compute_utilisation = is_own ? 0.8 : 0.2;
    }
  }
  const Job job = job_of({{std::move(first), std::move(second)}});
  EXPECT_EQ(sum_of(job), job.total->energy);
  EXPECT_GE(job.undivided, Energy{});
  EXPECT_NEAR(job.shares[0].dynamic.joules(), 1900, 30);
  EXPECT_NEAR(job.shares[1].dynamic.joules(), 1900, 30);
  // Either of them may have been right, or both by half.
  EXPECT_GT(job.command->energy.error, Energy::joules(1000));
}

TEST(JobShares, OfAnIdleBoardBelowItsRestHaveNothingToGiveBack) {
  const auto idle = [](const std::string& job, pid_t pid) {
    Recorded run;
    run.read_gpu(16, 121, 120, 121);
    run.add_processes();
    for (auto& process : run.recording.processes) process.pid += pid;
    run.recording.run.rank.job = job;
    return std::move(run.recording);
  };
  const Job job = job_of({{idle("7", 0), idle("8", 1000)}});
  EXPECT_EQ(sum_of(job), job.total->energy);
  ASSERT_EQ(job.shares.size(), 2u);
  for (const auto& share : job.shares) EXPECT_EQ(share.dynamic, Energy{});
}

TEST(JobShares, OfABoardBelowItsRestAreTheBoardsEnergy) {
  Recorded run;
  run.read_gpu(16, 121, 120, 121);
  run.add_processes();
  const auto profile = profile_of(run.recording);
  const auto& gpu = profile->domains[0];
  ASSERT_LT(gpu.energy->energy, *gpu.idle_part);
  const Job job = job_of({{run.recording}});
  EXPECT_EQ(job.undivided, Energy{});
  EXPECT_EQ(job.command->energy.energy, gpu.command->energy.energy);
  EXPECT_EQ(job.command->energy.energy, job.total->energy);
}

TEST(JobShares, HaveTheIntervalsOfTheirRecordings) {
  for (const bool in_doubt : {false, true}) {
    auto recording = one_of_two(100, "7", 0.4);
    if (in_doubt) {
      std::erase_if(recording.process_readings.gpu_processes, [](const auto& r) {
        return r.process == model::ProcessId{101} || (r.at > at(6) && r.at < at(10));
      });
    }
    const auto profile = profile_of(recording);
    std::optional<model::CommandEnergy> sum;
    for (const auto& d : profile->domains) {
      if (d.command) model::add(sum, *d.command);
    }
    const Job job = job_of({{std::move(recording)}});
    ASSERT_TRUE(sum && job.command);
    EXPECT_EQ(job.command->energy.energy, sum->energy.energy);
    EXPECT_NEAR(job.command->low().joules(), sum->low().joules(), 1e-3);
    EXPECT_NEAR(job.command->high().joules(), sum->high().joules(), 1e-3);
    EXPECT_NE(job.command->energy.shift, 0);
  }
}

// Two ranks with a window each, of 2 s and 4 s; they overlap for 1 s.
model::Recording with_windows(const model::DeviceSet& first = {},
                              const model::DeviceSet& second = {}, double gpu_until = 16) {
  auto recording = recorded(3, 13, "node1", "boot1", "GPU-1", gpu_until);
  for (const std::uint32_t rank : {0u, 1u}) {
    model::Process process;
    process.id = model::ProcessId{20 + rank};
    process.pid = static_cast<pid_t>(200 + rank);
    process.in_tree = true;
    process.start = at(3);
    process.rank.global = rank;
    recording.processes.push_back(process);
    model::Window window;
    window.name = "step";
    window.pid = process.pid;
    window.begin = at(rank == 0 ? 4 : 5);
    window.end = at(rank == 0 ? 6 : 9);
    window.devices = rank == 0 ? first : second;
    recording.windows.push_back(window);
  }
  return recording;
}

TEST(JobWindows, CountADeviceOnceAndSpreadOverRanks) {
  const Job job = job_of({{with_windows()}});
  ASSERT_EQ(job.windows.size(), 1u);
  const auto& step = job.windows[0];
  EXPECT_EQ(step.count, 2u);
  EXPECT_NEAR(step.energy->energy.joules(), 5 * 600, 10);  // from 4 s to 9 s
  EXPECT_EQ(step.seconds.of, 2u);
  EXPECT_DOUBLE_EQ(step.seconds.least, 2);
  EXPECT_DOUBLE_EQ(step.seconds.mean, 3);
  EXPECT_DOUBLE_EQ(step.seconds.most, 4);
  EXPECT_NEAR(step.seconds.deviation, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(step.seconds.most_in, "1");
  EXPECT_NEAR(step.joules.mean, 3 * 600, 10);
}

TEST(JobWindows, HaveTheDevicesOfTheirMonitors) {
  const model::DeviceSet board({model::DomainId{0}});
  const model::DeviceSet package({model::DomainId{1}});
  const Job job = job_of({{with_windows(board, package)}});
  EXPECT_NEAR(job.windows[0].energy->energy.joules(), 2 * 500 + 4 * 100, 8);
  EXPECT_NEAR(job.windows[0].joules.most, 1000, 6);
  EXPECT_EQ(job.windows[0].joules.most_in, "0");
}

TEST(JobWindows, WithADeviceThatWasLostAreALowerBound) {
  const Job job = job_of({{with_windows({}, {}, 7)}});
  const auto& step = job.windows[0];
  EXPECT_TRUE(step.is_partial);
  EXPECT_FALSE(step.reason.empty());
  // The one rank's window ended before.
  EXPECT_EQ(step.joules.of, 1u);
  EXPECT_NEAR(step.joules.most, 2 * 600, 10);
  EXPECT_EQ(step.joules.most_in, "0");
  const model::DeviceSet package({model::DomainId{1}});
  EXPECT_FALSE(job_of({{with_windows(package, package, 7)}}).windows[0].is_partial);
  EXPECT_FALSE(job_of({{with_windows()}}).windows[0].is_partial);
}

// A device that has no readings at all is in no sum, as in the total.
TEST(JobWindows, DoNotLackADeviceThatHasNoReadings) {
  const Job job = job_of({{with_windows({}, {}, 0)}});
  EXPECT_FALSE(job.windows[0].is_partial);
  EXPECT_NEAR(job.windows[0].energy->energy.joules(), 5 * 100, 2);
}

// Also of short windows with pauses, whose errors are alike.
TEST(JobWindows, HaveTheIntervalsOfTheirRecordings) {
  auto recording = recorded(3, 13);
  for (int i = 0; i < 200; ++i) {
    model::Window window;
    window.name = "step";
    window.begin = at(4 + 0.03 * i);
    window.end = at(4.02 + 0.03 * i);
    recording.windows.push_back(std::move(window));
  }
  const auto profile = profile_of(recording);
  std::optional<Measurement> sum;
  for (const auto& energy : profile->windows.at(0).energies) {
    ASSERT_TRUE(energy.energy);
    if (sum) model::add(*sum, *energy.energy);
    if (!sum) sum = energy.energy;
  }
  const Job job = job_of({{recording}});
  EXPECT_EQ(job.windows[0].energy->energy, sum->energy);
  EXPECT_EQ(job.windows[0].energy->repeatability, sum->repeatability);
  EXPECT_EQ(job.windows[0].energy->error, sum->error);
}

TEST(JobWindows, OfSeveralRecordersOfAHostCountOnce) {
  const Job one = job_of({{with_windows()}});
  const Job two = job_of({{with_windows(), with_windows()}});
  EXPECT_EQ(two.windows[0].energy->energy, one.windows[0].energy->energy);
  const Job hosts = job_of({{with_windows()}, {recorded(3, 13, "node2", "boot2", "GPU-2")}});
  EXPECT_EQ(hosts.windows[0].energy->energy, one.windows[0].energy->energy);
}

TEST(JobWindows, OfTwoHostsAddUp) {
  auto other = with_windows();
  other.run.boot_id = "boot2";
  for (auto& process : other.processes) process.rank.global = *process.rank.global + 2;
  const Job job = job_of({{with_windows()}, {other}});
  EXPECT_EQ(job.windows[0].seconds.of, 4u);
  const Energy of_one = job_of({{with_windows()}}).windows[0].energy->energy;
  EXPECT_EQ(job.windows[0].energy->energy, of_one + of_one);
}

TEST(Job, ErrorsOfHostsAddLinearly) {
  const auto a = recorded(3, 13);
  const Job one = job_of({{a}});
  const Job two = job_of({{a}, {recorded(3, 13, "node2", "boot2", "GPU-2")}});
  EXPECT_NEAR(two.total->error.joules(), 2 * one.total->error.joules(), 1e-3);
  Energy errors;  // of devices, too, as in a report of the recording
  const auto profile = profile_of(a);
  for (const auto& d : profile->domains) errors += d.energy->error;
  EXPECT_EQ(one.total->error, errors);
}

TEST(Job, MachinesOfOneNameAreDistinguished) {
  const Job job = job_of({{recorded(3, 13, "node", "aaaaaaaa-1", "GPU-1")},
                          {recorded(3, 13, "node", "bbbbbbbb-1", "GPU-2")},
                          {recorded(3, 13, "other", "cccccccc-1", "GPU-3")}});
  ASSERT_EQ(job.hosts.size(), 3u);
  EXPECT_EQ(job.hosts[0].host, "node (aaaaaaaa)");
  EXPECT_EQ(job.hosts[1].host, "node (bbbbbbbb)");
  EXPECT_EQ(job.hosts[2].host, "other");
}

model::Recording of_task(std::uint32_t rank, std::uint32_t world, const std::string& step) {
  auto recording = recorded(3, 13, "node" + std::to_string(rank), "boot" + std::to_string(rank),
                            "GPU-" + std::to_string(rank));
  recording.run.rank = {rank, rank, world, "slurm", "4711", step};
  return recording;
}

TEST(JobRanks, OfOneStepAreCountedTogether) {
  const Job whole = job_of({{of_task(0, 2, "0")}, {of_task(1, 2, "0")}});
  ASSERT_EQ(whole.rank_groups.size(), 1u);
  EXPECT_TRUE(whole.rank_groups[0].is_whole());
  EXPECT_THAT(whole.warnings, ElementsAre());
  const Job apart = job_of({{of_task(0, 2, "0")}, {of_task(1, 2, "1")}});
  ASSERT_EQ(apart.rank_groups.size(), 2u);
  EXPECT_THAT(apart.rank_groups[0].missing, ElementsAre(1u));
  EXPECT_THAT(apart.rank_groups[1].missing, ElementsAre(0u));
  EXPECT_EQ(apart.warnings.size(), 2u);
}

TEST(JobRanks, ABatchScriptIsNone) {
  for (const auto* step : {"", "4294967291"}) {
    const Job job = job_of({{of_task(0, 64, step)}});
    EXPECT_TRUE(job.rank_groups.empty()) << step;
    EXPECT_THAT(job.warnings, ElementsAre()) << step;
  }
}

TEST(JobRanks, NumbersOfADamagedFileAreNotCounted) {
  EXPECT_TRUE(job_of({{of_task(0, 4'000'000'000, "0")}}).rank_groups.empty());
}

TEST(JobRanks, OfOneMachineMayFollowEachOther) {
  auto first = of_task(0, 2, "0");
  auto second = of_task(1, 2, "0");
  auto later = of_task(0, 2, "0");
  first.run.work_end = at(6);
  later.run.work_begin = at(7);
  const Job job = job_of({{first, later}, {second}});
  EXPECT_THAT(job.rank_groups.at(0).repeated, ElementsAre());
  later.run.work_begin = at(5);
  EXPECT_THAT(job_of({{first, later}, {second}}).rank_groups.at(0).repeated, ElementsAre(0u));
}

// Their host times have no common origin: nothing says which of their times are the same.
TEST(Job, RecordingsThatNameNoMachineAreEachOfTheirOwn) {
  const auto log = recorded(3, 13, "", "");
  const Job job = job_of({{log}, {recorded(3, 13, "", "", "GPU-2")}});
  EXPECT_EQ(job.total->energy, energy_of(log) + energy_of(log));
  EXPECT_EQ(job.hosts[0].host, "0.jprof");
  ASSERT_EQ(job.warnings.size(), 1u);
  EXPECT_THAT(job.warnings[0], testing::HasSubstr("2 recordings do not name their machine"));
  EXPECT_TRUE(job_of({{log}}).warnings.empty());
}

TEST(Job, OneGpuInTwoLogsAtTheSameTimeIsRefused) {
  JobBuilder builder;
  ASSERT_TRUE(builder.add_host(named({recorded(3, 8, "", "")})));
  EXPECT_TRUE(builder.add_host(named({recorded(8, 13, "", "")})));
  EXPECT_TRUE(builder.add_host(named({recorded(3, 8, "node1", "")})));
  const auto twice = builder.add_host(named({recorded(7, 9, "", "")}));
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, testing::HasSubstr("have the same GPU (GPU-1)"));
}

TEST(Job, RejectsRecordingsOfOtherBootsAndWithoutTime) {
  JobBuilder builder;
  const auto mixed = builder.add_host(named({recorded(3, 5), recorded(3, 5, "node1", "boot2")}));
  EXPECT_EQ(mixed.error().code, Errc::kCorrupt);
  EXPECT_EQ(JobBuilder().add_host(named({model::Recording{}})).error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::analysis
