// The parts of libamd_smi and of Level Zero's Sysman (libze_loader) that are called.
// https://rocm.docs.amd.com/projects/amdsmi, https://oneapi-src.github.io/level-zero-spec
#pragma once

#include <cstdint>

namespace jouleprof::abi::amdsmi {

using Handle = void*;  // of a socket, or of a processor in it
constexpr int kSuccess = 0;
constexpr std::uint64_t kInitGpus = 1U << 1;

using Init = int (*)(std::uint64_t flags);
using ShutDown = int (*)();
using SocketHandles = int (*)(std::uint32_t* count, Handle* sockets);
using ProcessorHandles = int (*)(Handle socket, std::uint32_t* count, Handle* processors);
using GpuId = int (*)(Handle processor, std::uint16_t* device_id);
// Function in bits 0 to 2, device in 3 to 7, bus in 8 to 15, domain above 32.
using BdfId = int (*)(Handle processor, std::uint64_t* bdf);
// `resolution`: microjoules of a count. The library says 15.3 of every board.
using EnergyCount = int (*)(Handle processor, std::uint64_t* counts, float* resolution,
                            std::uint64_t* nanoseconds);

}  // namespace jouleprof::abi::amdsmi

namespace jouleprof::abi::zes {

using Handle = void*;  // of a driver, a device or a power domain
constexpr int kSuccess = 0;
constexpr std::uint32_t kTypePci = 0x2;
constexpr std::uint32_t kTypePower = 0xd;

struct PciProperties {
  std::uint32_t type = kTypePci;
  void* next = nullptr;
  std::uint32_t domain, bus, device, function;
  std::int32_t generation, width;
  std::int64_t max_bandwidth;
  std::uint8_t has_counters[8];
};
struct PowerProperties {
  std::uint32_t type = kTypePower;
  void* next = nullptr;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice;
  std::uint8_t can_control, has_threshold;
  std::int32_t default_limit, min_limit, max_limit;
};
struct EnergyCounter {
  std::uint64_t microjoules;
  std::uint64_t microseconds;
};
static_assert(sizeof(PowerProperties) == 40 && sizeof(EnergyCounter) == 16);

using Init = int (*)(std::uint32_t flags);
using List = int (*)(Handle of, std::uint32_t* count, Handle* out);
using DriverGet = int (*)(std::uint32_t* count, Handle* drivers);
using PciGetProperties = int (*)(Handle device, PciProperties* out);
using CardPowerDomain = int (*)(Handle device, Handle* power);
using PowerGetProperties = int (*)(Handle power, PowerProperties* out);
using PowerGetEnergyCounter = int (*)(Handle power, EnergyCounter* out);

}  // namespace jouleprof::abi::zes
