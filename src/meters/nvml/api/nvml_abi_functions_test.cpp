// Our declarations of functions against the vendor's, where its header is installed.
#include <gtest/gtest.h>

#include "abi/nvml_abi.h"

#if __has_include(<nvml.h>)
// The header renames functions to their newest version unless a macro prevents it.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <type_traits>

#include "tests/support/same_abi.h"

namespace jouleprof::abi {

// Behind a pointer, of the same size.
template <typename A, typename B>
struct SamePointee : std::bool_constant<sizeof(A) == sizeof(B)> {};
template <>
struct SamePointee<DeviceHandle, std::remove_pointer_t<nvmlDevice_t>> : std::true_type {};
#ifdef NVML_GPM_METRICS_GET_VERSION
template <>
struct SamePointee<GpmSampleBuffer, std::remove_pointer_t<nvmlGpmSample_t>> : std::true_type {};
#endif
template <typename A, typename B>
struct SameParameter<A*, B*> : SamePointee<A, B> {};

namespace {

#define SAME_FUNCTION(name) static_assert(SameFunction<fn::name, decltype(::nvml##name)>::value)

SAME_FUNCTION(Init);
SAME_FUNCTION(Init_v2);
SAME_FUNCTION(InitWithFlags);
SAME_FUNCTION(Shutdown);
SAME_FUNCTION(ErrorString);
SAME_FUNCTION(SystemGetDriverVersion);
SAME_FUNCTION(DeviceGetCount);
SAME_FUNCTION(DeviceGetCount_v2);
SAME_FUNCTION(DeviceGetHandleByIndex);
SAME_FUNCTION(DeviceGetHandleByIndex_v2);
SAME_FUNCTION(DeviceGetHandleByUUID);
SAME_FUNCTION(DeviceGetName);
SAME_FUNCTION(DeviceGetUUID);
SAME_FUNCTION(DeviceGetArchitecture);
SAME_FUNCTION(DeviceGetCudaComputeCapability);
SAME_FUNCTION(DeviceGetPersistenceMode);
SAME_FUNCTION(DeviceGetC2cModeInfoV);
SAME_FUNCTION(DeviceGetMemoryInfo);
SAME_FUNCTION(DeviceGetMemoryInfo_v2);
SAME_FUNCTION(DeviceGetUtilizationRates);
SAME_FUNCTION(DeviceGetEncoderUtilization);
SAME_FUNCTION(DeviceGetDecoderUtilization);
SAME_FUNCTION(DeviceGetJpgUtilization);
SAME_FUNCTION(DeviceGetOfaUtilization);
SAME_FUNCTION(DeviceGetFanSpeed);
SAME_FUNCTION(DeviceGetTemperature);
SAME_FUNCTION(DeviceGetTemperatureV);
SAME_FUNCTION(DeviceGetCurrentClocksEventReasons);
SAME_FUNCTION(DeviceGetCurrentClocksThrottleReasons);
SAME_FUNCTION(DeviceGetClockInfo);
SAME_FUNCTION(DeviceGetSupportedMemoryClocks);
SAME_FUNCTION(DeviceGetSupportedGraphicsClocks);
SAME_FUNCTION(DeviceSetGpuLockedClocks);
SAME_FUNCTION(DeviceResetGpuLockedClocks);
SAME_FUNCTION(DeviceSetMemoryLockedClocks);
SAME_FUNCTION(DeviceResetMemoryLockedClocks);
SAME_FUNCTION(DeviceGetPowerUsage);
SAME_FUNCTION(DeviceGetPowerManagementLimit);
SAME_FUNCTION(DeviceGetPowerManagementLimitConstraints);
SAME_FUNCTION(DeviceGetPowerManagementDefaultLimit);
SAME_FUNCTION(DeviceGetEnforcedPowerLimit);
SAME_FUNCTION(DeviceSetPowerManagementLimit);
SAME_FUNCTION(DeviceGetTotalEnergyConsumption);
SAME_FUNCTION(DeviceGetFieldValues);
SAME_FUNCTION(DeviceGetSamples);
SAME_FUNCTION(DeviceGetComputeRunningProcesses_v3);
SAME_FUNCTION(DeviceGetGraphicsRunningProcesses_v3);
SAME_FUNCTION(DeviceGetProcessUtilization);
SAME_FUNCTION(DeviceGetMigMode);
SAME_FUNCTION(DeviceGetMaxMigDeviceCount);
SAME_FUNCTION(DeviceGetMigDeviceHandleByIndex);
SAME_FUNCTION(DeviceGetGpuInstanceId);
#ifdef NVML_GPM_METRICS_GET_VERSION
SAME_FUNCTION(GpmMigSampleGet);
#endif

TEST(NvmlAbi, FunctionsMatchTheVendorsHeader) { SUCCEED() << "checked while compiling"; }

}  // namespace
}  // namespace jouleprof::abi
#else
TEST(NvmlAbi, FunctionsMatchTheVendorsHeader) { GTEST_SKIP() << "nvml.h is not installed"; }
#endif
