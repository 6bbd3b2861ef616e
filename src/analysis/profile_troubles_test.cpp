// Unknown idle power and failing sensors, with their warnings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Analyse, ACpuThatWasBusyBeforeHasNoIdlePower) {
  for (const double use : {0.1, 0.5}) {
    Recorded run;
    run.read_gpu();
    run.read_cpu();
    for (double t = 0; t <= 16; t += 0.5) {
      run.recording.process_readings.machine.push_back(
          {at(t), duration_of(8 * use * t), duration_of(8 * t), 0});
    }
    const auto profile = profile_of(run.recording);
    ASSERT_TRUE(profile);
    EXPECT_EQ(domain(*profile, kPackage0).levels.rest.has_value(), use < 0.25) << use;
  }
}

TEST(Analyse, AReadingLateAfterTheIdleSpanShowsWorkThatRanInIt) {
  for (const double use : {0.1, 0.9}) {
    Recorded run;
    run.read_gpu();
    run.read_cpu();
    run.recording.idle_spans = {{at(0), at(3)}};
    // The next reading comes half a second into the work, which takes all CPUs.
    const std::pair<double, double> busy_at[] = {{0, 0}, {3.5, 3 * use + 0.5}, {13, 3 * use + 10}};
    for (const auto& [t, busy] : busy_at) {
      run.recording.process_readings.machine.push_back(
          {at(t), duration_of(8 * busy), duration_of(8 * t), 0});
    }
    const auto profile = profile_of(run.recording);
    ASSERT_TRUE(profile);
    EXPECT_EQ(domain(*profile, kPackage0).levels.rest.has_value(), use < 0.25) << use;
  }
}

TEST(Analyse, ALostGpuHasNoEnergyButAReason) {
  Recorded run;
  run.read_gpu(8);
  run.read_cpu();
  run.recording.readings.failures.push_back(
      {kCounter, at(8), {Errc::kUnavailable, "the GPU has fallen off the bus (GPU_IS_LOST)"}});
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_FALSE(gpu.energy);
  EXPECT_FALSE(gpu.balance.parts);
  EXPECT_THAT(gpu.reason, HasSubstr("5.0 s after the work began"));
  EXPECT_THAT(gpu.reason, testing::MatchesRegex(".*after (249|250)[0-9.]* J.*"));
  EXPECT_THAT(gpu.reason, HasSubstr("GPU_IS_LOST"));
  EXPECT_TRUE(domain(*profile, kPackage0).energy);
}

// It took something, so that sums without it are lower bounds.
TEST(Analyse, AGpuThatIsLostBeforeTheWorkHasALowerBound) {
  Recorded run;
  run.read_gpu(2.5);
  run.read_cpu();
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_FALSE(gpu.energy);
  ASSERT_TRUE(gpu.least);
  EXPECT_EQ(gpu.least->energy, Energy{});
  EXPECT_THAT(gpu.reason, HasSubstr("its readings end 0.5 s before the work began"));
}

TEST(Analyse, AGpuWhoseReadingsBeginLateHasALowerBound) {
  Recorded run;
  run.read_gpu();
  run.read_cpu();
  auto& readings = run.recording.readings;
  std::erase_if(readings.powers, [](const auto& r) { return r.at < at(8); });
  std::erase_if(readings.counters,
                [](const auto& r) { return r.sensor == kCounter && r.before < at(8); });
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_FALSE(gpu.energy);
  ASSERT_TRUE(gpu.least);
  EXPECT_NEAR(gpu.least->energy.joules(), 5 * 500, 50);
  EXPECT_THAT(gpu.reason, testing::ContainsRegex(
                              "readings begin [45].[0-9] s after the work began, and show 25"));
  // Nor has a part before them an upper bound.
  const auto before = profile_of(run.recording, {.from = {}, .to = std::chrono::seconds{2}});
  ASSERT_TRUE(before);
  ASSERT_TRUE(domain(*before, kGpu0).least);
  EXPECT_EQ(domain(*before, kGpu0).least->energy, Energy{});
}

TEST(Analyse, NamesACounterThatCanNoLongerBeRead) {
  const auto warnings_of = [](double from, double to) {
    Recorded run;
    run.read_gpu();
    auto& readings = run.recording.readings;
    std::erase_if(readings.counters,
                  [&](const auto& r) { return r.before > at(from) && r.after < at(to); });
    for (double t = from; t < std::min(to, 16.0); t += 0.1) {
      readings.failures.push_back({kCounter, at(t), {Errc::kCorrupt, "it has 90 of 282 bytes"}});
    }
    const auto profile = profile_of(run.recording);
    EXPECT_TRUE(profile && domain(*profile, kGpu0).energy);
    return profile ? profile->warnings : std::vector<std::string>{};
  };
  EXPECT_THAT(warnings_of(8.2, 20),
              Contains(HasSubstr("counter could not be read from 5.2 s on: it has 90 of 282 bytes; "
                                 "the integral of power is used there")));
  EXPECT_THAT(warnings_of(8.2, 10), Contains(HasSubstr("from 5.2 s to 7.0 s: it has")));
  EXPECT_THAT(warnings_of(8.2, 8.7), testing::Not(Contains(HasSubstr("could not be read"))));
}

TEST(Analyse, NamesWhyMostOfTheReadingsAreMissing) {
  Recorded run;
  run.read_gpu();
  auto& readings = run.recording.readings;
  const auto is_missing = [](HostTime t) { return t > at(4) && t < at(12); };
  readings.counters.clear();
  std::erase_if(readings.powers, [&](const auto& r) { return is_missing(r.at); });
  readings.failures.push_back({kCounter, at(5), {Errc::kUnavailable, "status 503"}});
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kGpu0).energy);
  EXPECT_THAT(domain(*profile, kGpu0).reason,
              testing::MatchesRegex("no usable readings of .*; a read failed: status 503"));
}

TEST(Analyse, NamesACounterThatStoodStillBeforeTheWork) {
  Recorded run;
  run.read_gpu();
  for (auto& r : run.recording.readings.counters) r.total = Energy::joules(1000);
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("did not change while power was drawn")));
}

// However long before the work its readings began.
TEST(Analyse, NamesACounterThatIsNotUsed) {
  Recorded run;
  run.read_gpu();
  for (auto& r : run.recording.readings.counters) r.total = Energy::joules(3 * r.total.joules());
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("gpu0: counter is not used: ")));
  EXPECT_NEAR(domain(*profile, kGpu0).energy->energy.joules(), 5000, 50);
}

TEST(Analyse, ReadingsOfOneMomentAreNoEnergy) {
  Recorded run;
  run.read_gpu();
  run.recording.run.work_begin.reset();
  run.recording.run.work_end.reset();
  run.recording.idle_spans.clear();
  ASSERT_TRUE(profile_of(run.recording));
  run.recording.readings.powers.clear();
  run.recording.readings.counters.resize(1);
  run.recording.readings.counters[0].before = run.recording.readings.counters[0].after;
  const auto profile = profile_of(run.recording);
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message, HasSubstr("one moment"));
}

TEST(Analyse, ACommandWithoutAReadingHasNoEnergy) {
  Recorded run;
  run.read_gpu();
  run.recording.run.complete = false;
  run.recording.run.work_end.reset();
  std::erase_if(run.recording.readings.powers, [](const auto& r) { return r.at > at(3); });
  std::erase_if(run.recording.readings.counters, [](const auto& r) { return r.after > at(3); });
  auto profile = profile_of(run.recording);
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message, HasSubstr("its energy is unknown"));
  run.recording.run.being_written = true;
  profile = profile_of(run.recording);
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message, HasSubstr("report it again in a second"));
}

TEST(Analyse, ADomainWithoutSensorHasAReason) {
  Recorded run;
  run.read_gpu();
  run.recording.domains[1].unavailable_reason = "only root may read it";
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kPackage0).energy);
  EXPECT_EQ(domain(*profile, kPackage0).reason, "only root may read it");
}

TEST(Analyse, UnknownIdleIsAbsentNotZero) {
  Recorded run;
  run.read_gpu();
  run.recording.idle_spans.clear();
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_TRUE(domain(*profile, kGpu0).energy);
  EXPECT_FALSE(domain(*profile, kGpu0).levels.rest);
  EXPECT_FALSE(domain(*profile, kGpu0).levels.active);
  EXPECT_FALSE(domain(*profile, kGpu0).idle_part);
  EXPECT_FALSE(domain(*profile, kGpu0).unattributed);
}

TEST(Analyse, ABusyGpuIsNotIdle) {
  Recorded run;
  run.read_gpu();
  for (double t = 0; t < 16; t += 0.5) {
    run.recording.readings.gauges.push_back({kUtilisation, at(t), 0.5});
  }
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(domain(*profile, kGpu0).levels.rest);
  EXPECT_FALSE(domain(*profile, kGpu0).idle_part);
}

TEST(Analyse, RestIsTheLowerOfTheLevelsBeforeAndAfterTheWork) {
  Recorded run;
  run.read_gpu(16, 120, 500, 150);
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_NEAR(gpu.levels.rest->energy.joules(), 1200, 5);
  // Rest may have risen at any time of the work: 150 W are in the interval.
  EXPECT_NEAR(gpu.levels.rest->repeatability.joules(), 300, 15);
}

TEST(Analyse, ALevelAboveThePowerOfTheWorkWasNotRest) {
  Recorded run;
  run.read_gpu(16, 120, 90, 120);
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  const auto& gpu = domain(*profile, kGpu0);
  EXPECT_FALSE(gpu.levels.rest);
  EXPECT_FALSE(gpu.idle_part);
  EXPECT_THAT(gpu.levels.reason, HasSubstr("it drew less while the program ran"));
}

// Its memory was read while it began only.
TEST(Analyse, MemoryReadEarlyInABriefLifeIsNoPeak) {
  Recorded run;
  run.read_gpu();
  const auto add = [&](unsigned id, double end, double read) {
    model::Process process;
    process.id = model::ProcessId{id};
    process.pid = static_cast<pid_t>(id);
    process.start = at(4);
    process.end = at(end);
    process.in_tree = true;
    run.recording.processes.push_back(process);
    model::ProcessReading reading;
    reading.process = process.id;
    reading.at = at(read);
    reading.rss_bytes = 1000 * id;
    run.recording.process_readings.processes.push_back(reading);
  };
  add(1001, 4.1, 4.01);
  add(1002, 4.1, 4.06);
  add(1003, 9, 4.01);
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  std::map<pid_t, std::optional<std::uint64_t>> peaks;
  for (const auto& p : profile->processes) peaks[p.process.pid] = p.peak_rss_bytes;
  EXPECT_EQ(peaks.at(1001), std::nullopt);
  EXPECT_EQ(peaks.at(1002), 1002000u);
  EXPECT_EQ(peaks.at(1003), 1003000u);
}

TEST(Analyse, WarnsOfWhatTheRecordingShows) {
  Recorded run;
  run.gpu.gain = 1.1;
  run.read_gpu();
  run.recording.run.complete = false;
  run.recording.run.open_windows = {
      {"train", at(4), 77}, {"step", at(12), 77}, {"step", at(12.5), 77}, {"step", at(13), 78}};
  run.recording.warnings.push_back({at(4), "the disk was full"});
  run.recording.clock_points = {{at(0), RealTime{100s}, {}},
                                {at(5), RealTime{105s}, {}},
                                {at(6), RealTime{136s}, 30s},
                                {at(7), RealTime{237s}, 30s}};
  for (double t = 3.5; t < 13; t += 1) {
    run.recording.readings.gauges.push_back({kReasons, at(t), t < 8 ? 4.0 : 0.0});
  }
  const auto profile = profile_of(run.recording);
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("cut off")));
  EXPECT_THAT(profile->warnings, Contains("the disk was full"));
  EXPECT_THAT(profile->warnings,
              Contains(HasSubstr("window 'train' of process 77 was open when the recording was cut "
                                 "off, 12.00 s after its begin; it has no energy")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("2 windows 'step' of process 77 were open")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("window 'step' of process 78 was open")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("suspended for 30.0 s")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("set by +100.0 s")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("power limit in 50 %")));
  EXPECT_THAT(profile->warnings, Contains(HasSubstr("calibration errors allow")));
  EXPECT_NEAR(domain(*profile, kGpu0).energy->energy.joules(), 5000, 10);
}

}  // namespace
}  // namespace jouleprof::analysis
