// Our declarations against the vendor's, where its header is installed.
#include "abi/nvml_abi.h"

#include <gtest/gtest.h>

#if __has_include(<nvml.h>)
// The header renames functions to their newest version unless a macro prevents it.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "tests/support/same_abi.h"

namespace jouleprof::abi {
namespace {

SAME_SIZE(Return, nvmlReturn_t);
SAME_VALUE(Return::kSuccess, NVML_SUCCESS);
SAME_VALUE(Return::kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(Return::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(Return::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(Return::kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(Return::kAlreadyInitialized, NVML_ERROR_ALREADY_INITIALIZED);
SAME_VALUE(Return::kNotFound, NVML_ERROR_NOT_FOUND);
SAME_VALUE(Return::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(Return::kInsufficientPower, NVML_ERROR_INSUFFICIENT_POWER);
SAME_VALUE(Return::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(Return::kTimeout, NVML_ERROR_TIMEOUT);
SAME_VALUE(Return::kIrqIssue, NVML_ERROR_IRQ_ISSUE);
SAME_VALUE(Return::kLibraryNotFound, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_VALUE(Return::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(Return::kCorruptedInforom, NVML_ERROR_CORRUPTED_INFOROM);
SAME_VALUE(Return::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(Return::kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(Return::kOperatingSystem, NVML_ERROR_OPERATING_SYSTEM);
SAME_VALUE(Return::kLibRmVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(Return::kInUse, NVML_ERROR_IN_USE);
SAME_VALUE(Return::kMemory, NVML_ERROR_MEMORY);
SAME_VALUE(Return::kNoData, NVML_ERROR_NO_DATA);
SAME_VALUE(Return::kVgpuEccNotSupported, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED);
SAME_VALUE(Return::kInsufficientResources, NVML_ERROR_INSUFFICIENT_RESOURCES);
SAME_VALUE(Return::kFreqNotSupported, NVML_ERROR_FREQ_NOT_SUPPORTED);
SAME_VALUE(Return::kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(Return::kDeprecated, NVML_ERROR_DEPRECATED);
SAME_VALUE(Return::kNotReady, NVML_ERROR_NOT_READY);
SAME_VALUE(Return::kGpuNotFound, NVML_ERROR_GPU_NOT_FOUND);
SAME_VALUE(Return::kInvalidState, NVML_ERROR_INVALID_STATE);
SAME_VALUE(Return::kUnknown, NVML_ERROR_UNKNOWN);

SAME_VALUE(kSystemDriverVersionLength, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
SAME_VALUE(kDeviceUuidV2Length, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME_VALUE(kNotAvailable64, NVML_VALUE_NOT_AVAILABLE);

SAME_SIZE(Architecture, nvmlDeviceArchitecture_t);
SAME_VALUE(Architecture::kKepler, NVML_DEVICE_ARCH_KEPLER);
SAME_VALUE(Architecture::kMaxwell, NVML_DEVICE_ARCH_MAXWELL);
SAME_VALUE(Architecture::kPascal, NVML_DEVICE_ARCH_PASCAL);
SAME_VALUE(Architecture::kVolta, NVML_DEVICE_ARCH_VOLTA);
SAME_VALUE(Architecture::kTuring, NVML_DEVICE_ARCH_TURING);
SAME_VALUE(Architecture::kAmpere, NVML_DEVICE_ARCH_AMPERE);
SAME_VALUE(Architecture::kAda, NVML_DEVICE_ARCH_ADA);
SAME_VALUE(Architecture::kHopper, NVML_DEVICE_ARCH_HOPPER);
SAME_VALUE(Architecture::kBlackwell, NVML_DEVICE_ARCH_BLACKWELL);
#ifdef NVML_DEVICE_ARCH_T23X  // not yet in CUDA 13.0's
SAME_VALUE(Architecture::kT23x, NVML_DEVICE_ARCH_T23X);
#endif
SAME_VALUE(Architecture::kUnknown, NVML_DEVICE_ARCH_UNKNOWN);

SAME_SIZE(EnableState, nvmlEnableState_t);
SAME_VALUE(EnableState::kEnabled, NVML_FEATURE_ENABLED);
SAME_SIZE(ClockType, nvmlClockType_t);
SAME_VALUE(ClockType::kSm, NVML_CLOCK_SM);
SAME_VALUE(ClockType::kMem, NVML_CLOCK_MEM);
SAME_VALUE(ClockType::kVideo, NVML_CLOCK_VIDEO);
SAME_SIZE(TemperatureSensor, nvmlTemperatureSensors_t);
SAME_VALUE(TemperatureSensor::kGpu, NVML_TEMPERATURE_GPU);

SAME_VALUE(kReasonGpuIdle, nvmlClocksEventReasonGpuIdle);
SAME_VALUE(kReasonApplicationsClocksSetting, nvmlClocksEventReasonApplicationsClocksSetting);
SAME_VALUE(kReasonSwPowerCap, nvmlClocksEventReasonSwPowerCap);
SAME_VALUE(kReasonHwSlowdown, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(kReasonSyncBoost, nvmlClocksEventReasonSyncBoost);
SAME_VALUE(kReasonSwThermalSlowdown, nvmlClocksEventReasonSwThermalSlowdown);
SAME_VALUE(kReasonHwThermalSlowdown, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(kReasonHwPowerBrakeSlowdown, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(kReasonDisplayClockSetting, nvmlClocksEventReasonDisplayClockSetting);

SAME_VALUE(kFieldMemoryTemperature, NVML_FI_DEV_MEMORY_TEMP);
SAME_VALUE(kFieldTotalEnergyConsumption, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME_VALUE(kFieldPowerAverage, NVML_FI_DEV_POWER_AVERAGE);
SAME_VALUE(kFieldPowerInstant, NVML_FI_DEV_POWER_INSTANT);
SAME_VALUE(kScopeGpu, NVML_POWER_SCOPE_GPU);
SAME_VALUE(kScopeModule, NVML_POWER_SCOPE_MODULE);
SAME_VALUE(kScopeMemory, NVML_POWER_SCOPE_MEMORY);

SAME_SIZE(SamplingType, nvmlSamplingType_t);
SAME_VALUE(SamplingType::kTotalPower, NVML_TOTAL_POWER_SAMPLES);
SAME_VALUE(SamplingType::kGpuUtilization, NVML_GPU_UTILIZATION_SAMPLES);
SAME_VALUE(SamplingType::kMemoryUtilization, NVML_MEMORY_UTILIZATION_SAMPLES);
SAME_VALUE(SamplingType::kEncoderUtilization, NVML_ENC_UTILIZATION_SAMPLES);
SAME_VALUE(SamplingType::kDecoderUtilization, NVML_DEC_UTILIZATION_SAMPLES);
SAME_VALUE(SamplingType::kProcessorClock, NVML_PROCESSOR_CLK_SAMPLES);
SAME_VALUE(SamplingType::kMemoryClock, NVML_MEMORY_CLK_SAMPLES);
SAME_VALUE(SamplingType::kModulePower, NVML_MODULE_POWER_SAMPLES);
SAME_VALUE(SamplingType::kJpegUtilization, NVML_JPG_UTILIZATION_SAMPLES);
SAME_VALUE(SamplingType::kOfaUtilization, NVML_OFA_UTILIZATION_SAMPLES);
SAME_SIZE(ValueType, nvmlValueType_t);
SAME_VALUE(ValueType::kDouble, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(ValueType::kUnsignedInt, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(ValueType::kUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(ValueType::kUnsignedLongLong, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(ValueType::kSignedLongLong, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(ValueType::kSignedInt, NVML_VALUE_TYPE_SIGNED_INT);
SAME_VALUE(ValueType::kUnsignedShort, NVML_VALUE_TYPE_UNSIGNED_SHORT);

SAME_SIZE(Value, nvmlValue_t);
SAME_SIZE(FieldValue, nvmlFieldValue_t);
SAME_MEMBER(FieldValue, field_id, nvmlFieldValue_t, fieldId);
SAME_MEMBER(FieldValue, scope_id, nvmlFieldValue_t, scopeId);
SAME_MEMBER(FieldValue, timestamp, nvmlFieldValue_t, timestamp);
SAME_MEMBER(FieldValue, latency_usec, nvmlFieldValue_t, latencyUsec);
SAME_MEMBER(FieldValue, value_type, nvmlFieldValue_t, valueType);
SAME_MEMBER(FieldValue, nvml_return, nvmlFieldValue_t, nvmlReturn);
SAME_MEMBER(FieldValue, value, nvmlFieldValue_t, value);
SAME_SIZE(Sample, nvmlSample_t);
SAME_MEMBER(Sample, timestamp, nvmlSample_t, timeStamp);
SAME_MEMBER(Sample, value, nvmlSample_t, sampleValue);
SAME_SIZE(Utilization, nvmlUtilization_t);
SAME_MEMBER(Utilization, gpu, nvmlUtilization_t, gpu);
SAME_MEMBER(Utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(Memory, nvmlMemory_t);
SAME_MEMBER(Memory, total, nvmlMemory_t, total);
SAME_MEMBER(Memory, free, nvmlMemory_t, free);
SAME_MEMBER(Memory, used, nvmlMemory_t, used);
SAME_SIZE(MemoryV2, nvmlMemory_v2_t);
SAME_MEMBER(MemoryV2, version, nvmlMemory_v2_t, version);
SAME_MEMBER(MemoryV2, total, nvmlMemory_v2_t, total);
SAME_MEMBER(MemoryV2, reserved, nvmlMemory_v2_t, reserved);
SAME_MEMBER(MemoryV2, free, nvmlMemory_v2_t, free);
SAME_MEMBER(MemoryV2, used, nvmlMemory_v2_t, used);
SAME_SIZE(ProcessInfo, nvmlProcessInfo_t);
SAME_MEMBER(ProcessInfo, pid, nvmlProcessInfo_t, pid);
SAME_MEMBER(ProcessInfo, used_gpu_memory, nvmlProcessInfo_t, usedGpuMemory);
SAME_MEMBER(ProcessInfo, gpu_instance_id, nvmlProcessInfo_t, gpuInstanceId);
SAME_MEMBER(ProcessInfo, compute_instance_id, nvmlProcessInfo_t, computeInstanceId);
SAME_SIZE(ProcessUtilizationSample, nvmlProcessUtilizationSample_t);
SAME_MEMBER(ProcessUtilizationSample, pid, nvmlProcessUtilizationSample_t, pid);
SAME_MEMBER(ProcessUtilizationSample, timestamp, nvmlProcessUtilizationSample_t, timeStamp);
SAME_MEMBER(ProcessUtilizationSample, sm_util, nvmlProcessUtilizationSample_t, smUtil);
SAME_MEMBER(ProcessUtilizationSample, mem_util, nvmlProcessUtilizationSample_t, memUtil);
SAME_MEMBER(ProcessUtilizationSample, enc_util, nvmlProcessUtilizationSample_t, encUtil);
SAME_MEMBER(ProcessUtilizationSample, dec_util, nvmlProcessUtilizationSample_t, decUtil);
SAME_SIZE(Temperature, nvmlTemperature_t);
SAME_MEMBER(Temperature, version, nvmlTemperature_t, version);
SAME_MEMBER(Temperature, sensor_type, nvmlTemperature_t, sensorType);
SAME_MEMBER(Temperature, temperature, nvmlTemperature_t, temperature);
SAME_SIZE(C2cModeInfo, nvmlC2cModeInfo_v1_t);
#ifdef NVML_GPM_METRICS_GET_VERSION
SAME_SIZE(GpmMetric, nvmlGpmMetric_t);
SAME_MEMBER(GpmMetric, nvml_return, nvmlGpmMetric_t, nvmlReturn);
SAME_MEMBER(GpmMetric, value, nvmlGpmMetric_t, value);
SAME_MEMBER(GpmMetricsGet, num_metrics, nvmlGpmMetricsGet_t, numMetrics);
SAME_MEMBER(GpmMetricsGet, sample1, nvmlGpmMetricsGet_t, sample1);
SAME_MEMBER(GpmMetricsGet, sample2, nvmlGpmMetricsGet_t, sample2);
SAME_VALUE(kGpmMetricGraphicsUtil, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME_VALUE(kGpmMetricSmUtil, NVML_GPM_METRIC_SM_UTIL);
SAME_VALUE(kGpmMetricsGetVersion, NVML_GPM_METRICS_GET_VERSION);
#endif
SAME_VALUE(kMemoryV2Version, nvmlMemory_v2);
SAME_VALUE(kTemperatureVersion, nvmlTemperature_v1);
SAME_VALUE(kMigEnabled, NVML_DEVICE_MIG_ENABLE);

TEST(NvmlAbi, MatchesTheVendorsHeader) { SUCCEED() << "checked while compiling"; }

}  // namespace
}  // namespace jouleprof::abi
#else
TEST(NvmlAbi, MatchesTheVendorsHeader) { GTEST_SKIP() << "nvml.h is not installed"; }
#endif
