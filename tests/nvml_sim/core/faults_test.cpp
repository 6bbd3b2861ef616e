#include "nvml_sim/core/faults.h"

#include <gtest/gtest.h>

namespace jouleprof::nvml_sim {
namespace {

constexpr const char* kPower = "nvmlDeviceGetPowerUsage";

Fault fault(FaultKind kind, double begin, double end, std::optional<unsigned> device = {}) {
  Fault f;
  f.kind = kind;
  f.begin = begin;
  f.end = end;
  f.device = device;
  f.call = kPower;
  return f;
}

TEST(Faults, ALostGpuStaysLostAndOthersWork) {
  const Faults faults({fault(FaultKind::kGpuLost, 3, kForever, 1)});
  EXPECT_EQ(faults.failure(kPower, 1, 2.9), std::nullopt);
  EXPECT_EQ(faults.failure(kPower, 1, 3), abi::Return::kGpuIsLost);
  EXPECT_EQ(faults.failure(kPower, 0, 3), std::nullopt);
  EXPECT_EQ(faults.failure("nvmlDeviceGetCount_v2", std::nullopt, 3), std::nullopt);
}

TEST(Faults, AFailingCallFailsInEveryVersionAndOthersWork) {
  Fault f = fault(FaultKind::kFail, 1, 2);
  f.call = "nvmlDeviceGetMemoryInfo";
  f.code = abi::Return::kUnknown;
  const Faults faults({f});
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo_v2", 0, 1.5), abi::Return::kUnknown);
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo", 0, 1.5), abi::Return::kUnknown);
  EXPECT_EQ(faults.failure(kPower, 0, 1.5), std::nullopt);
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo", 0, 2), std::nullopt);
}

TEST(Faults, AFrozenSensorShowsItsLastValue) {
  Fault f = fault(FaultKind::kFrozen, 5, 7);
  f.sensor = SensorName::kCounter;
  const Faults faults({f});
  EXPECT_EQ(faults.sensor_time(SensorName::kCounter, 0, 6), 5);
  EXPECT_EQ(faults.sensor_time(SensorName::kCounter, 0, 7.5), 7.5);
  EXPECT_EQ(faults.sensor_time(SensorName::kRing, 0, 6), 6);
}

TEST(Faults, AReloadFailsEveryCallAndThenRestarts) {
  const Faults faults({fault(FaultKind::kDriverReload, 5, 7)});
  EXPECT_EQ(faults.failure(kPower, 0, 6), abi::Return::kDriverNotLoaded);
  EXPECT_EQ(faults.failure("nvmlDeviceGetCount_v2", std::nullopt, 6),
            abi::Return::kDriverNotLoaded);
  EXPECT_EQ(faults.last_reload(0, 6), std::nullopt);
  EXPECT_EQ(faults.last_reload(0, 8), 7);
  EXPECT_EQ(faults.counter_origin(0, 8), 7);
}

TEST(Faults, TheLatestResetCounts) {
  const Faults faults(
      {fault(FaultKind::kCounterReset, 9, kForever), fault(FaultKind::kCounterReset, 4, kForever)});
  EXPECT_EQ(faults.counter_origin(0, 3), std::nullopt);
  EXPECT_EQ(faults.counter_origin(0, 5), 4);
  EXPECT_EQ(faults.counter_origin(0, 10), 9);
}

TEST(Faults, HangsAndSentinels) {
  Fault value = fault(FaultKind::kSentinel, 1, 2);
  value.value = 4'294'967'295;
  const Faults faults({fault(FaultKind::kHang, 1, 2), value});
  const Fault* hang = faults.find(FaultKind::kHang, kPower, 0, 1.5);
  ASSERT_NE(hang, nullptr);
  EXPECT_EQ(hang->end, 2);
  EXPECT_EQ(faults.find(FaultKind::kHang, kPower, 0, 2.5), nullptr);
  const Fault* sentinel = faults.find(FaultKind::kSentinel, kPower, 0, 1.5);
  ASSERT_NE(sentinel, nullptr);
  EXPECT_EQ(sentinel->value, 4'294'967'295U);
  EXPECT_EQ(faults.find(FaultKind::kSentinel, "nvmlDeviceGetTemperature", 0, 1.5), nullptr);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
