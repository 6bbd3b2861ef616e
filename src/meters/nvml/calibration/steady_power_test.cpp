#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "meters/nvml/calibration/calibrator.h"
#include "meters/nvml/nvml_meter_fixture.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr HostTime kBegin{1000s};

// A sample every 20 ms for 2 s, from 1 s before kBegin on.
Result<SteadyPower> steady(const std::function<double(double)>& watts) {
  std::vector<model::PowerReading> readings;
  for (int i = -50; i < 100; ++i) {
    const Duration at = i * 20ms;
    readings.push_back({model::SensorId{}, kBegin + at, Power::watts(watts(seconds(at)))});
  }
  return steady_power(readings, kBegin);
}

std::string reason(const Result<SteadyPower>& found) {
  EXPECT_FALSE(found);
  if (found) return "";
  EXPECT_EQ(found.error().code, Errc::kUnavailable);
  return found.error().message;
}

TEST(SteadyPower, OfAConstantIsThatWithTheLeastSpread) {
  const auto low = steady([](double) { return 80.0; });
  ASSERT_TRUE(low) << low.error().message;
  EXPECT_NEAR(low->power.watts(), 80, 1e-9);
  EXPECT_NEAR(low->spread.watts(), 1, 1e-9);
  EXPECT_NEAR(steady([](double) { return 127.0; })->spread.watts(), 1.27, 1e-9);
}

TEST(SteadyPower, WhatLiesBeforeDoesNotCount) {
  const auto found = steady([](double t) { return t < 0 ? 500.0 : 80.0; });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NEAR(found->power.watts(), 80, 1e-9);
}

TEST(SteadyPower, NoiseWidensTheSpread) {
  // Bins of 0.1 s are alternately 79 and 81 W: a standard deviation of 1.026 W.
  const auto found = steady([](double t) { return std::fmod(t + 1.01, 0.2) < 0.1 ? 79.0 : 81.0; });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NEAR(found->power.watts(), 80, 0.1);
  EXPECT_NEAR(found->spread.watts(), 1.96 * 1.026, 0.05);
}

TEST(SteadyPower, FallingAndRisingPowerIsNotSteady) {
  EXPECT_THAT(reason(steady([](double t) { return 88 - 1.5 * t; })), HasSubstr("falling"));
  EXPECT_THAT(reason(steady([](double t) { return 80 + 1.5 * t; })), HasSubstr("rising"));
  EXPECT_TRUE(steady([](double t) { return 80 - 0.1 * t; }));
}

TEST(SteadyPower, PulsesAreNotSteady) {
  EXPECT_THAT(reason(steady([](double t) { return std::fmod(t + 1, 0.5) < 0.1 ? 100.0 : 80.0; })),
              HasSubstr("varied"));
}

TEST(SteadyPower, FewReadingsAreNotEnough) {
  EXPECT_THAT(reason(steady_power({}, kBegin)), HasSubstr("readings of 0.0 s"));
  std::vector<model::PowerReading> readings;
  for (int i = 0; i < 45; ++i) {
    readings.push_back({model::SensorId{}, kBegin + i * 20ms, Power::watts(80)});
  }
  EXPECT_THAT(reason(steady_power(readings, kBegin)), HasSubstr("readings of 0.9 s"));
}

}  // namespace
}  // namespace jouleprof::meters::nvml

namespace jouleprof::meters {
namespace {

using nvml::BoardLook;
using testing::HasSubstr;
using testing::Optional;

using BoardLookTest = NvmlMeterTest;

TEST_F(BoardLookTest, IsOfTheOneBoard) {
  add_hopper().compute = {{7, 500, 0, 0}};
  auto& second = add_hopper();
  second.temperature = 55;
  open();
  const BoardLook first_look = look_at(*meter_, meter_->gpus()[0]);
  EXPECT_EQ(first_look.processes, 1);
  EXPECT_EQ(first_look.temperature, 41);
  EXPECT_EQ(first_look.sm_clock, 1980e6);
  EXPECT_EQ(first_look.utilisation, 0.87);
  const BoardLook second_look = look_at(*meter_, meter_->gpus()[1]);
  EXPECT_EQ(second_look.processes, 0);
  EXPECT_EQ(second_look.temperature, 55);
}

TEST(BoardLook, ABoardIsAtRestWithoutContextAndWithClocksDown) {
  EXPECT_EQ((BoardLook{0, 345e6, 0, 31}.not_at_rest()), std::nullopt);
  EXPECT_EQ((BoardLook{0, {}, {}, {}}.not_at_rest()), std::nullopt);
  EXPECT_EQ((BoardLook{{}, 345e6, {}, {}}.not_at_rest()), std::nullopt);
  EXPECT_THAT((BoardLook{2, 345e6, 0, 31}.not_at_rest()), Optional(HasSubstr("2 process(es)")));
  EXPECT_THAT((BoardLook{0, 1980e6, 0, 31}.not_at_rest()), Optional(HasSubstr("1980 MHz")));
  EXPECT_THAT((BoardLook{0, 345e6, 0.5, 31}.not_at_rest()), Optional(HasSubstr("50 %")));
  EXPECT_THAT((BoardLook{{}, {}, 0, 31}.not_at_rest()), Optional(HasSubstr("neither")));
}

}  // namespace
}  // namespace jouleprof::meters
