#include "analysis/timeline/sensors/sampling_error.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

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

}  // namespace
}  // namespace jouleprof::analysis
