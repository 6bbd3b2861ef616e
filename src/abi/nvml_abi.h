// NVML's C ABI: the types of its functions. "nvml" before a name here is the exported symbol; a
// suffix (_v2, _v3) is part of the symbol, and the names without one are the oldest layouts.
#pragma once

#include "abi/nvml_types.h"

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
