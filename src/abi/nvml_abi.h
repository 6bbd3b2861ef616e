// NVML's C ABI: values, structures and the types of its functions, declared by hand from NVIDIA's
// published interface (https://docs.nvidia.com/deploy/nvml-api), so that nothing of NVIDIA's is
// needed to build. Layouts and numbers are checked against the vendor's header where that is
// installed (meters/nvml/api/nvml_abi_test.cpp).
#pragma once

#include <cstddef>

namespace jouleprof::abi {

// nvmlReturn_t
enum class Return : unsigned {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kAlreadyInitialized = 5,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kMemory = 20,
  kNoData = 21,
  kVgpuEccNotSupported = 22,
  kInsufficientResources = 23,
  kFreqNotSupported = 24,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kUnknown = 999,
};

// nvmlDevice_t: an opaque handle, of a GPU or of a MIG device.
struct DeviceHandle;
using Device = DeviceHandle*;

// Buffer lengths, the terminating zero included.
inline constexpr unsigned kSystemDriverVersionLength = 80;
inline constexpr unsigned kDeviceUuidV2Length = 96;  // long enough for a MIG device's

// What fields say that have no value.
inline constexpr unsigned long long kNotAvailable64 = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned kNotAvailable32 = ~0U;

// nvmlDeviceArchitecture_t
enum class Architecture : unsigned {
  kKepler = 2,
  kMaxwell = 3,
  kPascal = 4,
  kVolta = 5,
  kTuring = 6,
  kAmpere = 7,
  kAda = 8,
  kHopper = 9,
  kBlackwell = 10,
  kT23x = 11,
  kUnknown = 0xffffffff,
};

enum class EnableState : unsigned { kDisabled = 0, kEnabled = 1 };  // nvmlEnableState_t
enum class ClockType : unsigned { kGraphics = 0, kSm = 1, kMem = 2, kVideo = 3 };
enum class TemperatureSensor : unsigned { kGpu = 0 };

// Clock event reasons, a bit mask.
inline constexpr unsigned long long kReasonGpuIdle = 0x1;
inline constexpr unsigned long long kReasonApplicationsClocksSetting = 0x2;
inline constexpr unsigned long long kReasonSwPowerCap = 0x4;
inline constexpr unsigned long long kReasonHwSlowdown = 0x8;
inline constexpr unsigned long long kReasonSyncBoost = 0x10;
inline constexpr unsigned long long kReasonSwThermalSlowdown = 0x20;
inline constexpr unsigned long long kReasonHwThermalSlowdown = 0x40;
inline constexpr unsigned long long kReasonHwPowerBrakeSlowdown = 0x80;
inline constexpr unsigned long long kReasonDisplayClockSetting = 0x100;

// Fields of nvmlDeviceGetFieldValues. Powers are milliwatts, energies millijoules (unsigned long
// long), limits milliwatts, temperatures degrees Celsius.
inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldTotalEnergyConsumption = 83;
inline constexpr unsigned kFieldPowerAverage = 185;
inline constexpr unsigned kFieldPowerInstant = 186;

// Scopes of the power fields.
inline constexpr unsigned kScopeGpu = 0;
inline constexpr unsigned kScopeModule = 1;
inline constexpr unsigned kScopeMemory = 2;

// nvmlSamplingType_t
enum class SamplingType : unsigned {
  kTotalPower = 0,
  kGpuUtilization = 1,
  kMemoryUtilization = 2,
  kEncoderUtilization = 3,
  kDecoderUtilization = 4,
  kProcessorClock = 5,
  kMemoryClock = 6,
  kModulePower = 7,
  kJpegUtilization = 8,
  kOfaUtilization = 9,
};

// nvmlValueType_t
enum class ValueType : unsigned {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

// nvmlValue_t
union Value {
  double d;
  int i;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  signed long long sll;
  unsigned short us;
};

// nvmlFieldValue_t. `field_id` and `scope_id` are the caller's, the rest the driver's.
struct FieldValue {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;     // microseconds of the wall clock
  long long latency_usec;  // how long the value took to update
  ValueType value_type;
  Return nvml_return;  // the value holds nothing unless this is kSuccess
  Value value;
};

// nvmlSample_t
struct Sample {
  unsigned long long timestamp;  // microseconds of the wall clock
  Value value;
};

// nvmlUtilization_t: percent over the driver's last sample period (1/6 to 1 s)
struct Utilization {
  unsigned gpu;
  unsigned memory;
};

// nvmlMemory_t and nvmlMemory_v2_t, in bytes. In v1 `used` contains what the driver reserves.
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct MemoryV2 {
  unsigned version;  // kMemoryV2Version, set by the caller
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

// nvmlProcessInfo_v2_t: what the functions with suffix _v2 and _v3 fill.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;  // bytes, or kNotAvailable64
  unsigned gpu_instance_id;            // kNotAvailable32 without MIG
  unsigned compute_instance_id;        // kNotAvailable32 without MIG
};

// nvmlProcessUtilizationSample_t, in percent
struct ProcessUtilizationSample {
  unsigned pid;
  unsigned long long timestamp;  // microseconds of the wall clock
  unsigned sm_util;
  unsigned mem_util;
  unsigned enc_util;
  unsigned dec_util;
};

// nvmlTemperature_v1_t
struct Temperature {
  unsigned version;  // kTemperatureVersion, set by the caller
  TemperatureSensor sensor_type;
  int temperature;  // degrees Celsius
};

// nvmlC2cModeInfo_v1_t: the link between a superchip's GPU and CPU
struct C2cModeInfo {
  unsigned is_c2c_enabled;
};

// nvmlGpmSample_t: an opaque buffer that the driver allocates.
struct GpmSampleBuffer;
using GpmSample = GpmSampleBuffer*;

// nvmlGpmMetric_t. `metric_id` is the caller's, the rest the driver's.
struct GpmMetric {
  unsigned metric_id;
  Return nvml_return;  // the value holds nothing unless this is kSuccess
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
inline constexpr unsigned kGpmMetricGraphicsUtil = 1;  // percent
inline constexpr unsigned kGpmMetricSmUtil = 2;        // percent

// The beginning of nvmlGpmMetricsGet_t, whose array has become longer with drivers. The driver
// reads and writes `num_metrics` of its elements.
struct GpmMetricsGet {
  unsigned version;  // kGpmMetricsGetVersion, set by the caller
  unsigned num_metrics;
  GpmSample sample1;  // the earlier one
  GpmSample sample2;
  GpmMetric metrics[2];
};
inline constexpr unsigned kGpmMetricsGetVersion = 1;

// The version word of a structure whose layout has number `version`.
constexpr unsigned struct_version(std::size_t size, unsigned version) {
  return static_cast<unsigned>(size) | (version << 24U);
}
inline constexpr unsigned kMemoryV2Version = struct_version(sizeof(MemoryV2), 2);
inline constexpr unsigned kTemperatureVersion = struct_version(sizeof(Temperature), 1);

inline constexpr unsigned kMigEnabled = 1;

}  // namespace jouleprof::abi

// "nvml" before a name here is the exported symbol; a suffix (_v2, _v3) is part of the symbol, and
// the names without one are the oldest layouts.
namespace jouleprof::abi::fn {

// Library
using Init = Return();
using Init_v2 = Return();
using InitWithFlags = Return(unsigned flags);
using Shutdown = Return();
using ErrorString = const char*(Return result);
using SystemGetDriverVersion = Return(char* version, unsigned length);

// Devices
using DeviceGetCount = Return(unsigned* count);
using DeviceGetCount_v2 = Return(unsigned* count);
using DeviceGetHandleByIndex = Return(unsigned index, Device* device);
using DeviceGetHandleByIndex_v2 = Return(unsigned index, Device* device);
using DeviceGetHandleByUUID = Return(const char* uuid, Device* device);
using DeviceGetName = Return(Device device, char* name, unsigned length);
using DeviceGetUUID = Return(Device device, char* uuid, unsigned length);
using DeviceGetArchitecture = Return(Device device, Architecture* architecture);
using DeviceGetCudaComputeCapability = Return(Device device, int* major, int* minor);
using DeviceGetPersistenceMode = Return(Device device, EnableState* mode);
using DeviceGetC2cModeInfoV = Return(Device device, C2cModeInfo* info);

// State
using DeviceGetMemoryInfo = Return(Device device, Memory* memory);
using DeviceGetMemoryInfo_v2 = Return(Device device, MemoryV2* memory);
using DeviceGetUtilizationRates = Return(Device device, Utilization* utilization);
// Percent, and the period it was taken over.
using DeviceGetEncoderUtilization = Return(Device device, unsigned* percent, unsigned* period_us);
using DeviceGetDecoderUtilization = Return(Device device, unsigned* percent, unsigned* period_us);
using DeviceGetJpgUtilization = Return(Device device, unsigned* percent, unsigned* period_us);
using DeviceGetOfaUtilization = Return(Device device, unsigned* percent, unsigned* period_us);
using DeviceGetFanSpeed = Return(Device device, unsigned* percent);
using DeviceGetTemperature = Return(Device device, TemperatureSensor sensor, unsigned* celsius);
using DeviceGetTemperatureV = Return(Device device, Temperature* temperature);
using DeviceGetCurrentClocksEventReasons = Return(Device device, unsigned long long* reasons);
using DeviceGetCurrentClocksThrottleReasons = Return(Device device, unsigned long long* reasons);

// Clocks, in MHz
using DeviceGetClockInfo = Return(Device device, ClockType type, unsigned* mhz);
using DeviceGetSupportedMemoryClocks = Return(Device device, unsigned* count, unsigned* mhz);
using DeviceGetSupportedGraphicsClocks = Return(Device device, unsigned memory_mhz, unsigned* count,
                                                unsigned* mhz);
using DeviceSetGpuLockedClocks = Return(Device device, unsigned min_mhz, unsigned max_mhz);
using DeviceResetGpuLockedClocks = Return(Device device);
using DeviceSetMemoryLockedClocks = Return(Device device, unsigned min_mhz, unsigned max_mhz);
using DeviceResetMemoryLockedClocks = Return(Device device);

// Power, in milliwatts; energy, in millijoules since the driver was loaded
using DeviceGetPowerUsage = Return(Device device, unsigned* mw);
using DeviceGetPowerManagementLimit = Return(Device device, unsigned* mw);
using DeviceGetPowerManagementLimitConstraints = Return(Device device, unsigned* min_mw,
                                                        unsigned* max_mw);
using DeviceGetPowerManagementDefaultLimit = Return(Device device, unsigned* mw);
using DeviceGetEnforcedPowerLimit = Return(Device device, unsigned* mw);
using DeviceSetPowerManagementLimit = Return(Device device, unsigned mw);
using DeviceGetTotalEnergyConsumption = Return(Device device, unsigned long long* mj);

// Fields. The call succeeds even where single values fail: see FieldValue::nvml_return.
using DeviceGetFieldValues = Return(Device device, int count, FieldValue* values);
// The ring's samples later than `last_seen` (microseconds). With `samples` null, only `count`: how
// many there is room for. Not found: none is later.
using DeviceGetSamples = Return(Device device, SamplingType type, unsigned long long last_seen,
                                ValueType* value_type, unsigned* count, Sample* samples);

// Processes. `count` is the array's room on the way in; too small is kInsufficientSize, with the
// number needed in `count`.
using DeviceGetComputeRunningProcesses_v3 = Return(Device device, unsigned* count,
                                                   ProcessInfo* infos);
using DeviceGetGraphicsRunningProcesses_v3 = Return(Device device, unsigned* count,
                                                    ProcessInfo* infos);
using DeviceGetProcessUtilization = Return(Device device, ProcessUtilizationSample* samples,
                                           unsigned* count, unsigned long long last_seen);

// MIG
using DeviceGetMigMode = Return(Device device, unsigned* current, unsigned* pending);
using DeviceGetMaxMigDeviceCount = Return(Device device, unsigned* count);
using DeviceGetMigDeviceHandleByIndex = Return(Device device, unsigned index, Device* mig_device);
using DeviceGetGpuInstanceId = Return(Device mig_device, unsigned* id);

// GPM: means of hardware counters between two samples
using GpmSampleAlloc = Return(GpmSample* sample);
using GpmSampleFree = Return(GpmSample sample);
using GpmMigSampleGet = Return(Device device, unsigned gpu_instance_id, GpmSample sample);
using GpmMetricsGet = Return(GpmMetricsGet* metrics);

}  // namespace jouleprof::abi::fn
