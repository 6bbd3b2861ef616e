#include "analysis/windows/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ostream>
#include <random>

#include "analysis/analysed_test.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using ::testing::HasSubstr;

constexpr model::DomainId kSilent{5};

// A GPU that works at 500 W for 200 ms of every 500 ms, 120 W in between; "step" is a burst,
// "round" ten periods.
class Bursts {
 public:
  explicit Bursts(int count, unsigned seed = 1) {
    gpu.seed = seed;
    power.hold(120, 3);
    for (int i = 0; i < count; ++i) {
      power.hold(500, 0.2);
      power.hold(120, 0.3);
    }
    power.hold(120, 3);
    const double end = power.end();
    recording.run.work_begin = at(3);
    recording.run.work_end = at(end - 3);
    recording.domains.push_back(
        {kGpu0, model::DomainKind::kGpu, "gpu0", "a GPU", "", {}, true, ""});
    recording.domains.push_back(
        {kSilent, model::DomainKind::kDram, "dram-0", "", "", {}, true, "no sensor"});
    recording.sensors = {gpu.counter(), gpu.ring()};
    for (auto& s : recording.sensors) s.traits.scale = model::ScaleError::symmetric(0.05);
    recording.readings.powers = gpu.samples(power, 0, end);
    recording.readings.counters = gpu.reads(power, 0.1, end);
    for (int i = 0; i < count; ++i) {
      const double begin = 3 + 0.5 * i;
      if (i % 10 == 0) add("round", begin, begin + 5);
      add("step", begin, begin + 0.2);
    }
  }

  void add(std::string name, double begin, double end) {
    recording.windows.push_back({std::move(name), at(begin), at(end), 1, 1, false});
  }
  model::Profile analysed(const Part& options = {}) const {
    auto profile = profile_of(recording, options);
    EXPECT_TRUE(profile) << profile.error().message;
    return profile ? *profile : model::Profile{};
  }

  GpuSensors gpu;
  Truth power;
  model::Recording recording;
};

TEST(Windows, AreSummedByNameInOrderOfAppearance) {
  const Bursts bursts(40);
  const auto profile = bursts.analysed();
  ASSERT_EQ(profile.windows.size(), 2u);
  const auto& round = profile.windows[0];
  const auto& step = profile.windows[1];
  EXPECT_EQ(round.name, "round");
  EXPECT_EQ(round.count, 4u);
  EXPECT_EQ(round.total_time, 20s);
  EXPECT_EQ(step.name, "step");
  EXPECT_EQ(step.count, 40u);
  EXPECT_EQ(step.total_time, 8s);
  EXPECT_EQ(step.mean_time(), 200ms);
  // Rounds cover the work without pauses: their sum is exactly the whole.
  ASSERT_EQ(round.energies.size(), 2u);
  EXPECT_EQ(round.energies[0].energy->energy, profile.domains[0].energy->energy);
  const auto& energy = *step.energies[0].energy;
  EXPECT_NEAR(energy.energy.joules(), 40 * 100, energy.repeatability.joules());
  EXPECT_EQ(energy.method, "fused");
  EXPECT_EQ(step.energies[0].count, 40u);
  EXPECT_EQ(step.energies[0].reason, "");
  EXPECT_FALSE(step.energies[1].energy);
  EXPECT_EQ(step.energies[1].count, 0u);
  EXPECT_EQ(step.energies[1].reason, "no sensor");
}

TEST(Windows, OfMonitorsOfOtherDevicesAreNotLacking) {
  Bursts bursts(40);
  for (auto& w : bursts.recording.windows) {
    w.devices = model::DeviceSet({w.begin < at(13) ? kSilent : kGpu0});
  }
  std::erase_if(bursts.recording.readings.powers, [](const auto& r) { return r.at > at(18.1); });
  std::erase_if(bursts.recording.readings.counters,
                [](const auto& r) { return r.after > at(18.1); });
  const auto step = bursts.analysed().windows[1];
  EXPECT_EQ(step.count, 40u);
  EXPECT_EQ(step.energies[0].measuring, 20u);
  EXPECT_GT(step.energies[0].count, 5u);
  EXPECT_EQ(lacking_in(step, step.energies[0]), 20u - step.energies[0].count);
  EXPECT_EQ(lacking_in(step, step.energies[1]), 20u);  // without any reading
}

TEST(Windows, CalibrationErrorAddsLinearlyAndRepeatabilityInPart) {
  Bursts bursts(40);
  // In no step with the sensor.
  std::mt19937 random(1);
  std::uniform_int_distribution<int> microseconds(0, 40'000);
  for (auto& w : bursts.recording.windows) {
    if (w.name == "round") continue;
    w.begin += std::chrono::microseconds(microseconds(random));
    w.end += std::chrono::microseconds(microseconds(random));
  }
  const auto profile = bursts.analysed();
  const analysis::Run single(bursts.recording);
  Energy sum;
  double square = 0;
  double linear = 0;
  for (const auto& w : bursts.recording.windows) {
    if (w.name != "step") continue;
    const auto m = single.energy(0, w);
    ASSERT_TRUE(m);
    sum += m->energy;
    square += std::pow(m->repeatability.joules(), 2);
    linear += m->repeatability.joules();
  }
  const auto& total = *profile.windows[1].energies[0].energy;
  EXPECT_EQ(total.energy, sum);
  const double found = total.repeatability.joules();
  EXPECT_GT(found, 1.5 * std::sqrt(square));
  EXPECT_LT(found, 0.7 * linear);
  EXPECT_NEAR(total.error.joules(), std::hypot(found, 0.05 * sum.joules()), 1e-3);
}

TEST(Windows, QuartilesAreOfSingleWindows) {
  Bursts bursts(40);
  bursts.recording.windows.clear();
  for (int i = 0; i < 20; ++i) {  // bursts of 100 J, two in five with the pause of 36 J after it
    bursts.add("mixed", 3 + 0.5 * i, 3 + 0.5 * i + (i % 5 < 2 ? 0.5 : 0.2));
  }
  for (int i = 0; i < 3; ++i) bursts.add("few", 3 + 0.5 * i, 3.5 + 0.5 * i);
  for (int i = 0; i < 20; ++i) bursts.add("short", 3 + 0.5 * i, 3.01 + 0.5 * i);
  const auto groups = bursts.analysed().windows;
  const auto& mixed = groups[0];
  ASSERT_TRUE(mixed.energies[0].quartiles);
  EXPECT_NEAR(mixed.energies[0].quartiles->lower.joules(), 100, 3);
  EXPECT_NEAR(mixed.energies[0].quartiles->median.joules(), 100, 4);
  EXPECT_NEAR(mixed.energies[0].quartiles->upper.joules(), 136, 3);
  ASSERT_TRUE(mixed.time_quartiles);
  EXPECT_EQ(mixed.time_quartiles->median, 200ms);
  EXPECT_EQ(mixed.time_quartiles->upper, 500ms);
  EXPECT_FALSE(mixed.energies[1].quartiles);  // the silent domain
  EXPECT_FALSE(groups[1].energies[0].quartiles);
  EXPECT_FALSE(groups[1].time_quartiles);
  // A sensor sees what surrounds them: their energies differ less, or more, than their work.
  EXPECT_TRUE(groups[2].energies[0].energy);
  EXPECT_FALSE(groups[2].energies[0].quartiles);
  EXPECT_TRUE(groups[2].time_quartiles);
}

// A sensor of 100 ms sees mostly what is around a window of 5 ms: the same bias in each of them.
TEST(Windows, TheErrorsOfWindowsShorterThanASensorsResponseAddLinearly) {
  Bursts bursts(15);  // too few for a regression
  bursts.recording.windows.clear();
  for (int i = 0; i < 15; ++i) bursts.add("short", 3 + 0.5 * i, 3.005 + 0.5 * i);
  const auto profile = bursts.analysed();
  const analysis::Run single(bursts.recording);
  double sum = 0;
  for (const auto& w : bursts.recording.windows) {
    sum += single.energy(0, w)->repeatability.joules();
  }
  const auto& total = *profile.windows[0].energies[0].energy;
  EXPECT_NEAR(total.repeatability.joules(), sum, 1e-5);
  EXPECT_LE(std::abs(total.energy.joules() - 15 * 2.5), total.repeatability.joules());
}

// Their errors add up to far more, which says nothing.
TEST(Windows, ManyShortOnesHaveNoMoreThanTheTimeFromTheFirstToTheLast) {
  Bursts bursts(15);
  bursts.recording.windows.clear();
  for (int i = 0; i < 450; ++i) bursts.add("short", 3 + 0.015 * i, 3.0001 + 0.015 * i);
  bursts.add("whole", 3, 3.0001 + 0.015 * 449);
  const auto profile = bursts.analysed();
  const auto& total = *profile.windows[0].energies[0].energy;
  const auto& whole = *profile.windows[1].energies[0].energy;
  EXPECT_LE(total.high(), whole.high());
  EXPECT_EQ(total.low(), Energy{});
  EXPECT_LE(total.repeatability, total.error);
}

TEST(Windows, TheSumOfManyShortOnesIsWithinItsRepeatability) {
  int within = 0;
  constexpr int kRuns = 20;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    const Bursts bursts(60, seed);
    const auto profile = bursts.analysed();
    const auto& total = *profile.windows[1].energies[0].energy;
    within += std::abs(total.energy.joules() - 6000) <= total.repeatability.joules();
  }
  EXPECT_GE(within, 17);  // of 95 % of 20
}

// Marks as dense as the timeline's knots, at many places relative to the intervals that it is
// solved in: a mark just after the end of an interval of constant power once caused an endless
// loop.
TEST(Windows, OneAfterTheOtherForMinutes) {
  Bursts bursts(1);
  bursts.power = Truth();
  bursts.power.hold(300, 400);
  bursts.recording.run.work_end = at(390);
  bursts.recording.readings.powers = bursts.gpu.samples(bursts.power, 0, 400);
  bursts.recording.readings.counters = bursts.gpu.reads(bursts.power, 0.1, 400);
  for (const double each : {0.0231, 0.03598, 0.0417}) {
    bursts.recording.windows.clear();
    for (double t = 3; t < 390; t += each) bursts.add("short", t, t + 0.8 * each);
    const auto profile = bursts.analysed();
    ASSERT_EQ(profile.windows.size(), 1u);
    const auto& energy = profile.windows[0].energies[0];
    EXPECT_EQ(energy.count, profile.windows[0].count);
    EXPECT_NEAR(energy.energy->energy.joules(), 300 * seconds(profile.windows[0].total_time),
                0.002 * energy.energy->energy.joules());
  }
}

TEST(Windows, UnavailableOnesAreLeftOutWithAReason) {
  Bursts bursts(10);
  bursts.add("step", 30, 31);
  bursts.add("late", 40, 41);
  const auto profile = bursts.analysed();
  const auto& step = profile.windows[1];
  EXPECT_EQ(step.count, 11u);
  EXPECT_EQ(step.energies[0].count, 10u);
  EXPECT_THAT(step.energies[0].reason, HasSubstr("before the end of the window"));
  EXPECT_FALSE(profile.windows[2].energies[0].energy);
  const analysis::Run single(bursts.recording);
  EXPECT_EQ(single.energy(1, bursts.recording.windows[0]).error().message, "no sensor");
}

TEST(Windows, OfAPartAreThoseThatBeginInIt) {
  const Bursts bursts(40);
  Part first;
  first.to = 2500ms;
  Part second;
  second.from = 2500ms;
  const auto a = bursts.analysed(first).windows;
  const auto b = bursts.analysed(second).windows;
  EXPECT_EQ(a[0].count, 1u);  // a whole round of 5 s
  EXPECT_EQ(a[0].total_time, 5s);
  EXPECT_EQ(a[1].count, 5u);
  EXPECT_EQ(b[0].name, "step");
  EXPECT_EQ(b[0].count, 35u);
  EXPECT_EQ(b[1].count, 3u);
}

model::ImportedWindow imported(std::string name, std::string limit, double length, double joules) {
  model::ImportedWindow w;
  w.name = std::move(name);
  w.duration = duration_of(length);
  w.energies = {{kGpu0, Energy::joules(joules)}};
  w.labels = {{"power_limit_watts", std::move(limit)}};
  return w;
}

TEST(ImportedWindows, AreTheOtherToolsAndNeverAMeasurement) {
  model::Recording recording;
  recording.domains = {{kGpu0, model::DomainKind::kGpu, "gpu0", "", "", {}, true, "a table"}};
  recording.imported_windows = {imported("net", "100", 10, 1000), imported("net", "150", 8, 1100),
                                imported("net", "100", 12, 1100)};
  recording.imported_windows.push_back(imported("none", "", 1, 0));
  recording.imported_windows.back().energies.clear();
  const auto profile = profile_of(recording);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(profile->has_span());
  EXPECT_EQ(profile->domains[0].reason,
            "a table; its windows are samples of a sweep's settings, which have no sum");
  ASSERT_EQ(profile->windows.size(), 3u);
  const auto& first = profile->windows[0];
  EXPECT_TRUE(first.imported);
  EXPECT_EQ(first.count, 2u);
  EXPECT_EQ(first.total_time, 22s);
  EXPECT_EQ(first.labels, recording.imported_windows[0].labels);
  EXPECT_EQ(first.energies[0].reported, Energy::joules(2100));
  EXPECT_FALSE(first.energies[0].energy);
  EXPECT_EQ(profile->windows[1].energies[0].reported, Energy::joules(1100));
  EXPECT_FALSE(profile->windows[2].energies[0].reported);
  EXPECT_EQ(profile->windows[2].energies[0].count, 0u);
  EXPECT_NE(profile->windows[2].energies[0].reason, "");

  Part part;
  part.from = 1s;
  EXPECT_EQ(profile_of(recording, part).error().code, Errc::kInvalidArgument);
}

// Eight ranks that each open a window around the same step of the same board: once its energy, not
// eight times.
TEST(Windows, OverlappingProcessesShareTheDevice) {
  Bursts run(40);
  const auto alone = run.analysed();
  const auto step_of = [](const model::Profile& profile) {
    for (const auto& group : profile.windows) {
      if (group.name == "step") return group;
    }
    return model::WindowGroup{};
  };
  const auto one = step_of(alone);
  const auto windows = run.recording.windows;
  for (pid_t rank = 2; rank <= 8; ++rank) {
    for (auto w : windows) {
      if (w.name != "step") continue;
      w.pid = rank;
      w.begin += rank * 1ms;  // not quite at once, and not to the end
      run.recording.windows.push_back(w);
    }
  }
  const auto all = step_of(run.analysed());
  EXPECT_EQ(all.count, 8 * one.count);
  EXPECT_EQ(all.energies[0].count, all.count);
  EXPECT_TRUE(one.energies[0].quartiles);
  EXPECT_FALSE(all.energies[0].quartiles);  // a single window's energy would count several times
  const double once = one.energies[0].energy->energy.joules();
  EXPECT_NEAR(all.energies[0].energy->energy.joules() / once, 1 + 0.008 / 0.2 * 120 / 500, 0.02);
  // Single windows have all energy of their time, each: a mean is of these.
  EXPECT_FALSE(one.energies[0].singles);
  ASSERT_TRUE(all.energies[0].singles);
  EXPECT_NEAR(all.energies[0].singles->energy.joules() / once, 8, 0.3);
  EXPECT_GE(all.energies[0].singles->error.joules(), 7 * one.energies[0].energy->error.joules());
  // One process's own windows count in full, each.
  auto twice = Bursts(40);
  for (auto w : std::vector(twice.recording.windows)) {
    if (w.name == "step") twice.recording.windows.push_back(w);
  }
  EXPECT_NEAR(step_of(twice.analysed()).energies[0].energy->energy.joules() / once, 2, 1e-6);
}

// Steps of four phases whose power rises within each, for 30 s and more, as a sensor shows them.
struct Phases {
  double scale;    // of 6, 20, 40 and 10 ms
  double rise;     // of the sensor, in seconds
  double poll;     // 0: a driver's buffer
  double refresh;  // of the sensor
  // Power within each: so many times its mean for such parts of its time.
  std::vector<std::pair<double, double>> parts = {{0.8, 0.1}, {1, 0.9}};
};
const std::vector<std::pair<double, double>> kUneven{{0.6, 0.25}, {1.25, 0.4}, {0.95, 0.35}};
void PrintTo(const Phases& p, std::ostream* out) {
  *out << "scale " << p.scale << " rise " << p.rise << " poll " << p.poll << " of " << p.refresh
       << " parts " << p.parts.size();
}

class StepsOfPhases : public testing::TestWithParam<Phases> {};

TEST_P(StepsOfPhases, HaveTheirTruthWithinTheRepeatability) {
  const Phases& phases = GetParam();
  constexpr std::array kNames{"data", "forward", "backward", "optimizer"};
  constexpr std::array kWatts{150.0, 600.0, 650.0, 350.0};
  constexpr std::array kSeconds{0.006, 0.020, 0.040, 0.010};
  constexpr int kSeeds = 3;
  std::array<int, 4> within{};
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    GpuSensors gpu;
    gpu.seed = seed;
    gpu.rise = phases.rise;
    gpu.sample_every = phases.refresh;
    gpu.phase = 0.09 * uniform(random);
    gpu.jitter = phases.poll == 0;
    Truth power;
    power.hold(120, 3 + 0.05 * uniform(random));
    model::Recording recording;
    recording.run.work_begin = at(power.end());
    std::array<double, 4> truth{};
    const double end = power.end() + 30 * std::max(1.0, phases.scale / 8);
    while (power.end() < end) {
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        const double begin = power.end();
        const double length = kSeconds[i] * phases.scale * std::max(0.3, 1 + 0.03 * normal(random));
        const double watts = kWatts[i] * (1 + 0.02 * normal(random));
        for (const auto& [of_mean, part] : phases.parts) power.hold(of_mean * watts, part * length);
        truth[i] += power.joules(begin, power.end());
        recording.windows.push_back({kNames[i], at(begin), at(power.end()), 1, 1, false});
      }
    }
    recording.run.work_end = at(power.end());
    power.hold(120, 3);
    recording.domains.push_back({kGpu0, model::DomainKind::kGpu, "gpu0", "", "", {}, true, ""});
    recording.sensors = {gpu.counter(), gpu.ring()};
    const auto samples = gpu.samples(power, 0, power.end());
    if (phases.poll > 0) {
      recording.sensors[1].kind = model::SensorKind::kPowerInstant;
      std::size_t newest = 0;
      for (double t = 0.2; t < power.end(); t += phases.poll + 0.001 * uniform(random)) {
        while (newest + 1 < samples.size() && samples[newest + 1].at <= at(t)) ++newest;
        recording.readings.powers.push_back({kRing, at(t), samples[newest].power});
      }
    } else {
      recording.readings.powers = samples;
    }
    recording.readings.counters = gpu.reads(power, gpu.read_every, power.end());
    const auto profile = profile_of(recording);
    ASSERT_TRUE(profile) << profile.error().message;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      const auto& found = *profile->windows[i].energies[0].energy;
      ASSERT_EQ(profile->windows[i].name, kNames[i]);
      within[i] += std::abs(found.energy.joules() - truth[i]) <= found.repeatability.joules();
      // A phase between longer ones is known by them, too.
      if (phases.scale >= 8 && phases.poll == 0) {
        EXPECT_LT(found.repeatability.joules() / truth[i], 0.3) << kNames[i];
      }
    }
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) EXPECT_GE(within[i], kSeeds - 1) << kNames[i];
}

INSTANTIATE_TEST_SUITE_P(
    Lengths, StepsOfPhases,
    testing::Values(Phases{0.125, 0, 0, 0.020}, Phases{0.5, 0, 0, 0.020}, Phases{1, 0, 0, 0.020},
                    Phases{2, 0, 0, 0.020}, Phases{8, 0, 0, 0.020}, Phases{16, 0, 0, 0.020},
                    Phases{1, 0.030, 0, 0.020}, Phases{2, 0.030, 0, 0.020},
                    Phases{16, 0.030, 0, 0.020}, Phases{1, 0, 0.020, 0.025},
                    Phases{8, 0, 0.020, 0.025}, Phases{32, 0, 0.025, 0.025},
                    Phases{2, 0, 0.020, 0.100}, Phases{32, 0, 0.020, 0.100},
                    Phases{16, 0, 0.100, 0.100}, Phases{1, 0, 0, 0.020, kUneven},
                    Phases{2, 0, 0, 0.020, kUneven}, Phases{8, 0, 0, 0.020, kUneven},
                    Phases{1, 0.030, 0, 0.020, kUneven}, Phases{16, 0.030, 0, 0.020, kUneven}));

TEST(WindowSum, EndsInStepWithTheSensorErrAlike) {
  model::Measurement m;
  m.energy = Energy::joules(10);
  m.repeatability = Energy::joules(1);
  model::WindowSum in_step, elsewhere, begins_alone;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> turn;
  for (int i = 0; i < 400; ++i) {
    in_step.add(m, 0, model::EndTurns{0.3, 0.95 + 0.1 * turn(random)});
    elsewhere.add(m, 0, model::EndTurns{turn(random), turn(random)});
    begins_alone.add(m, 0, model::EndTurns{0.3, turn(random)});
  }
  EXPECT_NEAR(in_step.sum()->repeatability.joules(), 400, 12);
  EXPECT_NEAR(elsewhere.sum()->repeatability.joules(), 20, 0.01);
  EXPECT_NEAR(begins_alone.sum()->repeatability.joules(), 400 * std::sqrt(0.5), 12);
}

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr model::DomainId kGpu{0};

model::ImportedWindow window(std::optional<HostTime> begin, Duration duration, double joules) {
  model::ImportedWindow w;
  w.begin = begin;
  w.duration = duration;
  w.energies.push_back({kGpu, Energy::joules(joules)});
  return w;
}

TEST(ReportedEnergy, AddsWindowsOneAfterTheOther) {
  const std::vector windows{window(HostTime{10s}, 5s, 20), window(HostTime{0s}, 10s, 30),
                            window(HostTime{60s}, 1s, 4)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->energy, Energy::joules(54));
  EXPECT_EQ(sum->windows, 3u);
  EXPECT_EQ(sum->within, 0u);
}

TEST(ReportedEnergy, CountsWhatLiesWithinAnotherOnce) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{1s}, 3s, 30),
                            window(HostTime{2s}, 1s, 10), window(HostTime{4s}, 6s, 60)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->energy, Energy::joules(100));
  EXPECT_EQ(sum->within, 3u);
}

TEST(ReportedEnergy, CountsTheTimesWithoutAFigure) {
  std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{1s}, 3s, 30),
                      window(HostTime{0s}, 10s, 50), window(HostTime{20s}, 2s, 10)};
  EXPECT_EQ(reported_energy({windows.data(), 2}, kGpu)->lacking, 0u);
  windows[1].energies.clear();  // its time is in that of the first
  windows[2].energies[0].domain = model::DomainId{1};
  EXPECT_EQ(reported_energy(windows, kGpu)->lacking, 0u);
  windows[3].energies.clear();
  EXPECT_EQ(reported_energy(windows, kGpu)->lacking, 1u);
}

TEST(ReportedEnergy, HasNoSumOfWindowsThatOverlapInPart) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{5s}, 10s, 90)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("overlap in part"));
}

TEST(ReportedEnergy, SamplesOfASweepHaveNoSum) {
  std::vector windows{window(HostTime{0s}, 1s, 30), window(HostTime{5s}, 1s, 40)};
  for (auto& w : windows) w.labels.push_back({"power_limit_watts", "300"});
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("samples of a sweep"));
}

// It was of something else than what its time lies in.
TEST(ReportedEnergy, HasNoSumWhereAnInnerWindowHasMore) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{5s}, 1s, 150)};
  EXPECT_FALSE(reported_energy(windows, kGpu));
}

TEST(ReportedEnergy, OneWindowNeedsNoTimeAndSeveralDo) {
  std::vector windows{window(std::nullopt, 10s, 100)};
  ASSERT_TRUE(reported_energy(windows, kGpu));
  windows.push_back(windows.front());
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("no time"));
  EXPECT_FALSE(reported_energy(windows, model::DomainId{1}));
}

}  // namespace

}  // namespace jouleprof::analysis
