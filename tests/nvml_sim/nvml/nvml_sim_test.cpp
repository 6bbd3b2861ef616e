// The built library, loaded and called as any NVML client would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "abi/nvml_abi.h"
#include "base/clock.h"
#include "base/process/dynlib.h"
#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

// A function of the library, by its name without "nvml".
#define NVML(name) call<abi::fn::name>("nvml" #name)

using abi::Return;
using namespace std::chrono_literals;

std::int64_t real_ns() { return RealClock::now().time_since_epoch().count(); }

class NvmlSim : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = DynLib::open(JOULEPROF_NVML_SIM_LIBRARY);
    ASSERT_TRUE(opened) << opened.error().message;
    library_ = std::move(*opened);
    unsetenv("JOULEPROF_NVML_EPOCH");
    unsetenv("JOULEPROF_NVML_STATE");
  }
  void TearDown() override {
    while (NVML(Shutdown)() == Return::kSuccess) {
    }
  }

  template <typename F>
  F* call(const char* name) {
    F* function = nullptr;
    EXPECT_TRUE(library_.bind(function, name)) << name;
    return function;
  }

  // Starts a scenario whose time zero is now.
  void start(const std::string& text) {
    tree_.write("scenario.json", text);
    setenv("JOULEPROF_NVML_SCENARIO", (tree_ / "scenario.json").c_str(), 1);
    epoch_ns_ = real_ns() / 1'000'000'000 * 1'000'000'000;
    setenv("JOULEPROF_NVML_EPOCH", std::to_string(epoch_ns_ / 1'000'000'000).c_str(), 1);
    ASSERT_EQ(NVML(Init_v2)(), Return::kSuccess);
  }
  abi::Device device(unsigned index) {
    abi::Device handle = nullptr;
    EXPECT_EQ(NVML(DeviceGetHandleByIndex_v2)(index, &handle), Return::kSuccess);
    return handle;
  }
  double truth(unsigned index, std::int64_t begin, std::int64_t end) {
    using Energy = double(unsigned, long long, long long);
    return call<Energy>("jouleprof_nvml_sim_energy_joules")(index, begin, end);
  }
  Return power(abi::Device handle, unsigned& mw) { return NVML(DeviceGetPowerUsage)(handle, &mw); }
  Return energy(abi::Device handle, unsigned long long& mj) {
    return NVML(DeviceGetTotalEnergyConsumption)(handle, &mj);
  }

  DynLib library_;
  TempTree tree_;
  std::int64_t epoch_ns_ = 0;
};

constexpr const char* kConstant =
    R"({"devices": {"generation": "hopper", "power": {"shape": "constant", "watts": 250}}})";

TEST_F(NvmlSim, ExportsItsVersion) {
  auto* const* version =
      static_cast<const char* const*>(library_.symbol("jouleprof_nvml_sim_version"));
  ASSERT_NE(version, nullptr);
  EXPECT_THAT(*version, testing::StartsWith("0."));
}

TEST_F(NvmlSim, FailsBeforeInit) {
  unsigned count = 0;
  EXPECT_EQ(NVML(DeviceGetCount_v2)(&count), Return::kUninitialized);
  EXPECT_EQ(NVML(Shutdown)(), Return::kUninitialized);
  EXPECT_STREQ(NVML(ErrorString)(Return::kGpuIsLost), "GPU is lost");
}

TEST_F(NvmlSim, RefusesAnInvalidScenario) {
  tree_.write("bad.json", "{}");
  setenv("JOULEPROF_NVML_SCENARIO", (tree_ / "bad.json").c_str(), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(NVML(Init_v2)(), Return::kUnknown);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("bad.json: devices: is missing"));
}

TEST_F(NvmlSim, EverySensorShowsAConstant250Watts) {
  start(kConstant);
  const auto handle = device(0);
  unsigned mw = 0;
  ASSERT_EQ(power(handle, mw), Return::kSuccess);
  EXPECT_EQ(mw, 250'000U);
  std::array<abi::FieldValue, 4> fields{};
  fields[0].field_id = abi::kFieldPowerInstant;
  fields[1].field_id = abi::kFieldPowerAverage;
  fields[2].field_id = abi::kFieldPowerInstant;
  fields[2].scope_id = abi::kScopeModule;
  fields[3].field_id = 9999;
  ASSERT_EQ(NVML(DeviceGetFieldValues)(handle, 4, fields.data()), Return::kSuccess);
  EXPECT_EQ(fields[0].value.ui, 250'000U);
  EXPECT_EQ(fields[1].value.ui, 250'000U);
  EXPECT_EQ(fields[2].nvml_return, Return::kNotSupported);
  EXPECT_EQ(fields[3].nvml_return, Return::kNotSupported);
  EXPECT_DOUBLE_EQ(truth(0, epoch_ns_, epoch_ns_ + 4'000'000'000), 1000);
  EXPECT_LT(truth(1, 0, 1), 0);
}

TEST_F(NvmlSim, TheRingReturnsSamplesLaterThanTheLastSeen) {
  start(kConstant);
  auto* const samples_of = NVML(DeviceGetSamples);
  abi::ValueType type{};
  unsigned count = 0;
  const auto total = abi::SamplingType::kTotalPower;
  ASSERT_EQ(samples_of(device(0), total, 0, &type, &count, nullptr), Return::kSuccess);
  ASSERT_EQ(count, 120U);
  std::vector<abi::Sample> samples(count);
  ASSERT_EQ(samples_of(device(0), total, 0, &type, &count, samples.data()), Return::kSuccess);
  ASSERT_EQ(count, 120U);
  EXPECT_EQ(type, abi::ValueType::kUnsignedInt);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].value.ui, 250'000U);
    if (i == 0) continue;
    EXPECT_EQ(samples[i].timestamp - samples[i - 1].timestamp, 20'000U);
  }
  const auto now_us = static_cast<unsigned long long>(real_ns() / 1000);
  EXPECT_LE(samples.back().timestamp, now_us);
  // No sample is later than a time in the future.
  const auto again =
      samples_of(device(0), total, now_us + 1'000'000, &type, &count, samples.data());
  EXPECT_EQ(again, Return::kNotFound);
}

TEST_F(NvmlSim, TheCounterAgreesWithTheTrueEnergy) {
  start(R"({"devices": {"generation": "hopper", "power": {"shape": "square", "low_watts": 100,
      "high_watts": 600, "period_seconds": 0.1, "duty_ratio": 0.3}}})");
  unsigned long long mj = 0;
  std::int64_t before = real_ns();
  while (before - epoch_ns_ < 300'000'000) {
    std::this_thread::sleep_for(20ms);
    before = real_ns();
  }
  ASSERT_EQ(energy(device(0), mj), Return::kSuccess);
  mj -= 100'000'000;  // of before the scenario
  // It is the true energy at its last update, at most 100 + 16 ms before the read began, less the
  // energy not yet observed: at most 600 W for the time constant of 14 ms.
  EXPECT_GE(static_cast<double>(mj),
            truth(0, epoch_ns_, before - 116'100'000) * 1e3 - 1 - 14 * 600);
  EXPECT_LE(static_cast<double>(mj), truth(0, epoch_ns_, real_ns()) * 1e3);
}

TEST_F(NvmlSim, FindsDevicesByUuid) {
  start(R"({"devices": [{"generation": "hopper"}, {"generation": "grace_hopper"}]})");
  std::array<char, 96> text{};
  abi::Device found = nullptr;
  ASSERT_EQ(NVML(DeviceGetUUID)(device(1), text.data(), 96), Return::kSuccess);
  EXPECT_EQ(NVML(DeviceGetHandleByUUID)(text.data(), &found), Return::kSuccess);
  EXPECT_EQ(found, device(1));
  EXPECT_EQ(NVML(DeviceGetUUID)(device(1), text.data(), 10), Return::kInsufficientSize);
  unsigned mw = 0;
  EXPECT_EQ(power(nullptr, mw), Return::kInvalidArgument);
  EXPECT_EQ(power(reinterpret_cast<abi::Device>(&mw), mw), Return::kInvalidArgument);
  EXPECT_EQ(NVML(DeviceGetPowerUsage)(device(0), nullptr), Return::kInvalidArgument);
}

TEST_F(NvmlSim, SetsALimitWithinItsBoundsWherePermitted) {
  start(R"({"devices": [
      {"generation": "hopper", "power": {"shape": "constant", "watts": 650}},
      {"generation": "hopper", "power_limit": {"settable": false}}]})");
  auto* const set = NVML(DeviceSetPowerManagementLimit);
  auto* const get = NVML(DeviceGetPowerManagementLimit);
  unsigned mw = 0;
  EXPECT_EQ(set(device(0), 100'000), Return::kInvalidArgument);
  ASSERT_EQ(set(device(0), 300'000), Return::kSuccess);
  ASSERT_EQ(get(device(0), &mw), Return::kSuccess);
  EXPECT_EQ(mw, 300'000U);
  EXPECT_EQ(set(device(1), 300'000), Return::kNoPermission);
  unsigned long long reasons = 0;
  NVML(DeviceGetCurrentClocksEventReasons)(device(0), &reasons);
  EXPECT_EQ(reasons, abi::kReasonSwPowerCap);
  EXPECT_LT(call<double(unsigned)>("jouleprof_nvml_sim_speed_ratio")(0), 1);
}

TEST_F(NvmlSim, LocksAClockWherePermitted) {
  start(R"({"devices": [
      {"generation": "hopper", "power": {"shape": "constant", "watts": 650}},
      {"generation": "hopper", "power_limit": {"settable": false}}]})");
  auto* const lock = NVML(DeviceSetGpuLockedClocks);
  EXPECT_EQ(lock(device(0), 990, 300), Return::kInvalidArgument);
  ASSERT_EQ(lock(device(0), 990, 990), Return::kSuccess);
  auto* const speed = call<double(unsigned)>("jouleprof_nvml_sim_speed_ratio");
  EXPECT_NEAR(speed(0), 0.5, 1e-9);
  ASSERT_EQ(NVML(DeviceResetGpuLockedClocks)(device(0)), Return::kSuccess);
  EXPECT_EQ(speed(0), 1);
  EXPECT_EQ(lock(device(1), 990, 990), Return::kNoPermission);
  EXPECT_EQ(NVML(DeviceResetGpuLockedClocks)(device(1)), Return::kNoPermission);
}

TEST_F(NvmlSim, MigDevicesHaveNoPower) {
  start(R"({"devices": {"generation": "hopper", "mig": [{"profile": "3g.40gb"}]}})");
  abi::Device mig = nullptr;
  auto* const by_index = NVML(DeviceGetMigDeviceHandleByIndex);
  ASSERT_EQ(by_index(device(0), 0, &mig), Return::kSuccess);
  EXPECT_EQ(by_index(device(0), 1, &mig), Return::kNotFound);
  std::array<char, 96> text{};
  ASSERT_EQ(NVML(DeviceGetName)(mig, text.data(), 96), Return::kSuccess);
  EXPECT_STREQ(text.data(), "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
  unsigned mw = 0;
  EXPECT_EQ(power(mig, mw), Return::kNotSupported);
}

TEST_F(NvmlSim, ListsProcessesInTwoCalls) {
  start(R"({"devices": {"generation": "hopper", "processes": [
      {"pid": "self", "sm_utilisation_ratio": 0.4, "memory_mib": 100},
      {"pid": 12345, "sm_utilisation_ratio": 0.2, "memory_mib": 50}]}})");
  auto* const running = NVML(DeviceGetComputeRunningProcesses_v3);
  unsigned count = 0;
  ASSERT_EQ(running(device(0), &count, nullptr), Return::kInsufficientSize);
  ASSERT_EQ(count, 2U);
  std::vector<abi::ProcessInfo> infos(count);
  ASSERT_EQ(running(device(0), &count, infos.data()), Return::kSuccess);
  EXPECT_EQ(infos[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(infos[1].used_gpu_memory, 50U << 20U);
  std::vector<abi::ProcessUtilizationSample> samples(count);
  ASSERT_EQ(NVML(DeviceGetProcessUtilization)(device(0), samples.data(), &count, 0),
            Return::kSuccess);
  EXPECT_EQ(samples[0].sm_util, 40U);
  EXPECT_EQ(samples[1].pid, 12345U);
}

TEST_F(NvmlSim, FaultsApplyToTheirDeviceAndCall) {
  start(R"({"devices": [{"generation": "hopper"}, {"generation": "hopper"}],
      "faults": [{"kind": "gpu_lost", "device": 1},
                 {"kind": "fail", "call": "nvmlDeviceGetTotalEnergyConsumption"},
                 {"kind": "fail", "call": "nvmlDeviceGetSamples"}]})");
  abi::Device lost = nullptr;
  EXPECT_EQ(NVML(DeviceGetHandleByIndex_v2)(1, &lost), Return::kGpuIsLost);
  unsigned mw = 0;
  EXPECT_EQ(power(device(0), mw), Return::kSuccess);
  unsigned long long mj = 0;
  EXPECT_EQ(energy(device(0), mj), Return::kNotSupported);
  abi::FieldValue field{};
  field.field_id = abi::kFieldTotalEnergyConsumption;
  NVML(DeviceGetFieldValues)(device(0), 1, &field);
  EXPECT_EQ(field.nvml_return, Return::kNotSupported);
  abi::ValueType type{};
  unsigned count = 0;
  EXPECT_EQ(
      NVML(DeviceGetSamples)(device(0), abi::SamplingType::kTotalPower, 0, &type, &count, nullptr),
      Return::kNotSupported);
}

TEST_F(NvmlSim, AHangingCallReturnsWhenTheFaultEnds) {
  start(kConstant);  // only for the epoch
  NVML(Shutdown)();
  const double hang_end = static_cast<double>(real_ns() - epoch_ns_) * 1e-9 + 0.2;
  tree_.write("hang.json",
              R"({"devices": {"generation": "hopper"}, "faults": {"kind": "hang", "call":
                 "nvmlDeviceGetPowerUsage", "for_seconds": )" +
                  std::to_string(hang_end) + "}}");
  setenv("JOULEPROF_NVML_SCENARIO", (tree_ / "hang.json").c_str(), 1);
  ASSERT_EQ(NVML(Init_v2)(), Return::kSuccess);
  unsigned mw = 0;
  EXPECT_EQ(power(device(0), mw), Return::kSuccess);
  EXPECT_GE(static_cast<double>(real_ns() - epoch_ns_) * 1e-9, hang_end - 1e-6);
}

TEST_F(NvmlSim, ACallSpendsItsCpuTime) {
  start(R"({"devices": {"generation": "hopper"},
            "call_costs_us": {"nvmlDeviceGetTotalEnergyConsumption": 5000}})");
  const auto cpu_time = [] {
    timespec ts{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) * 1e-9;
  };
  const double before = cpu_time();
  unsigned long long mj = 0;
  energy(device(0), mj);
  const double by_function = cpu_time();
  EXPECT_GE(by_function - before, 0.005);
  abi::FieldValue field{};
  field.field_id = abi::kFieldTotalEnergyConsumption;
  NVML(DeviceGetFieldValues)(device(0), 1, &field);
  EXPECT_GE(cpu_time() - by_function, 0.005);
}

TEST_F(NvmlSim, IsThreadSafe) {
  start(R"({"devices": {"generation": "hopper", "power": {"shape": "square", "low_watts": 100,
      "high_watts": 600, "period_seconds": 0.1}, "processes": {"pid": "self"}}})");
  const auto handle = device(0);
  auto* const set = NVML(DeviceSetPowerManagementLimit);
  auto* const running = NVML(DeviceGetComputeRunningProcesses_v3);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (unsigned k = 0; k < 50; ++k) {
        unsigned mw = 0;
        unsigned long long mj = 0;
        unsigned count = 0;
        EXPECT_EQ(power(handle, mw), Return::kSuccess);
        EXPECT_EQ(energy(handle, mj), Return::kSuccess);
        running(handle, &count, nullptr);
        if (i == 0) {
          EXPECT_EQ(set(handle, 300'000 + k), Return::kSuccess);
        }
        if (i == 1) {
          EXPECT_EQ(NVML(Init_v2)(), Return::kSuccess);
          EXPECT_EQ(NVML(Shutdown)(), Return::kSuccess);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace jouleprof
