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
  const Faults faults({f});
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo_v2", 0, 1.5), abi::Return::kNotSupported);
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo", 0, 1.5), abi::Return::kNotSupported);
  EXPECT_EQ(faults.failure(kPower, 0, 1.5), std::nullopt);
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo", 0, 2), std::nullopt);
}

TEST(Faults, AReloadFailsEveryCallAndThenRestarts) {
  const Faults faults({fault(FaultKind::kDriverReload, 5, 7)});
  EXPECT_EQ(faults.failure(kPower, 0, 6), abi::Return::kDriverNotLoaded);
  EXPECT_EQ(faults.failure("nvmlDeviceGetCount_v2", std::nullopt, 6),
            abi::Return::kDriverNotLoaded);
  EXPECT_EQ(faults.last_reload(0, 6), std::nullopt);
  EXPECT_EQ(faults.last_reload(0, 8), 7);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
