#include "analysis/timeline/locked_load.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "analysis/analysed_test.h"
#include "analysis/kernel_loads_test.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

constexpr SamplingSensor kHopper{0.02, 0.0038, 0.0132};

TEST(SamplingError, APeriodThatTheSamplesDivideIsSeenAtOnePhase) {
  EXPECT_NEAR(square_wave_error(0.020, 0.4, kHopper), 0.37, 0.03);
  EXPECT_NEAR(square_wave_error(0.020, 0.1, kHopper), 0.60, 0.04);
  EXPECT_NEAR(square_wave_error(0.040, 0.4, kHopper), 0.13, 0.03);
  EXPECT_NEAR(square_wave_error(0.010, 0.4, kHopper), 0.15, 0.03);
}

TEST(SamplingError, OtherPeriodsPassThroughAllPhases) {
  EXPECT_LT(square_wave_error(0.0333333, 0.4, kHopper), 0.03);
  EXPECT_LT(square_wave_error(0.0166667, 0.4, kHopper), 0.02);
  EXPECT_LT(square_wave_error(0.0193, 0.4, kHopper), 0.02);
  EXPECT_LT(square_wave_error(0.0005, 0.4, kHopper), 0.01);  // the lag makes it even
}

TEST(SamplingError, ConstantPowerAndNoneHaveNone) {
  EXPECT_NEAR(sampling_error(std::vector<double>(5000, 300.0), 1e-3, kHopper), 0, 1e-9);
  EXPECT_EQ(sampling_error(std::vector<double>(5000, 0.0), 1e-3, kHopper), 0);
  EXPECT_EQ(sampling_error(std::vector<double>(20, 300.0), 1e-3, kHopper), 0);  // too short
}

TEST(SamplingError, ARandomLoadHasLittle) {
  std::mt19937 random(1);
  std::vector<double> power;
  for (int burst = 0; burst < 2000; ++burst) {
    power.insert(power.end(), 3 + random() % 20, burst % 2 == 0 ? 300.0 : 0.0);
  }
  EXPECT_LT(sampling_error(power, 1e-3, kHopper), 0.03);
}

TEST(SamplingError, ThePeriodIsFound) {
  std::vector<double> power;
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) power.push_back(i % 20 < 8 ? 300.0 : 0.0);
  EXPECT_NEAR(period_of(power, 1e-3), 0.020, 1e-9);
  for (double& p : power) p = 300.0 * static_cast<double>(random() % 2);
  EXPECT_EQ(period_of(power, 1e-3), 0);
  EXPECT_EQ(period_of(std::vector<double>(5000, 300.0), 1e-3), 0);
}

using namespace simulated;

// A loop of which nothing was traced.
model::Recording untraced(double period) {
  auto made = synthesise(fixed_rate({.period = period, .jitter = 0, .seconds = 8}, 1));
  made.recording.traces.clear();
  return std::move(made.recording);
}

void add_windows(model::Recording& recording, double period) {
  for (int i = 0; i < static_cast<int>(7 / period); ++i) {
    const double begin = 1 + i * period;
    recording.windows.push_back({"frame", at(begin), at(begin + 0.8 * period)});
  }
}

double half_width(const model::Recording& recording, std::string& warnings) {
  const auto profile = profile_of(recording);
  EXPECT_TRUE(profile);
  for (const auto& text : profile->warnings) warnings += text + "\n";
  const auto& energy = *profile->domains[0].energy;
  return energy.repeatability.joules() / energy.energy.joules();
}

TEST(LockedLoad, WindowsAtARateThatTheSamplesDivide) {
  auto recording = untraced(0.020);
  add_windows(recording, 0.020);
  std::string warnings;
  EXPECT_GT(half_width(recording, warnings), 0.04);
  EXPECT_NE(warnings.find("every 20.00 ms"), std::string::npos) << warnings;
}

TEST(LockedLoad, WindowsAtAnotherRate) {
  auto recording = untraced(0.0193);
  add_windows(recording, 0.0193);
  std::string warnings;
  EXPECT_LT(half_width(recording, warnings), 0.02);
  EXPECT_EQ(warnings.find("samples are"), std::string::npos) << warnings;
}

TEST(LockedLoad, FlatSamplesOfAGpuThatIsBusyInPart) {
  for (const double busy : {0.4, 1.0}) {
    auto recording = untraced(0.020);
    recording.sensors[1].traits.lag = duration_of(0.0025);
    recording.sensors.push_back({model::SensorId{7},
                                 kGpu0,
                                 model::SensorKind::kGauge,
                                 std::string(model::gauge::kGpuUtilisation),
                                 {},
                                 {}});
    for (int i = 2; i < 8; ++i) {
      recording.readings.gauges.push_back({model::SensorId{7}, at(i), busy});
    }
    int turn = 0;
    for (auto& reading : recording.readings.powers) {
      if (reading.at < at(1) || reading.at > at(9)) continue;
      reading.power = Power::watts(300 + 0.5 * static_cast<double>(++turn % 3));
    }
    recording.run.work_begin = at(1.5);
    recording.run.work_end = at(8);
    std::string warnings;
    half_width(recording, warnings);
    EXPECT_EQ(warnings.find("hardly varies") != std::string::npos, busy < 1) << warnings;
  }
}

}  // namespace

}  // namespace jouleprof::analysis
