#include "spans/cupti/aggregate/driver_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "abi/cuda_abi.h"

namespace jouleprof::cupti {

std::string uuid_text(const char* kind, std::span<const unsigned char, 16> uuid) {
  if (std::all_of(uuid.begin(), uuid.end(), [](unsigned char b) { return b == 0; })) return {};
  std::string text = kind;
  for (std::size_t i = 0; i != uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

model::TracedDevice driver_device(std::uint32_t ordinal) {
  namespace cuda = abi::cuda;
  model::TracedDevice device;
  device.ordinal = ordinal;
  // Only the one that is there already: loading a driver is not for us.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return device;
  const auto get = reinterpret_cast<cuda::fn::DeviceGet*>(dlsym(driver, "cuDeviceGet"));
  const auto board = reinterpret_cast<cuda::fn::DeviceGetUuid*>(dlsym(driver, "cuDeviceGetUuid"));
  const auto part =
      reinterpret_cast<cuda::fn::DeviceGetUuid_v2*>(dlsym(driver, "cuDeviceGetUuid_v2"));
  cuda::Device handle = 0;
  cuda::Uuid of_board{};
  if (get != nullptr && board != nullptr &&
      get(&handle, static_cast<int>(ordinal)) == cuda::kSuccess &&
      board(&of_board, handle) == cuda::kSuccess) {
    device.uuid = uuid_text("GPU-", of_board.bytes);
    cuda::Uuid of_part{};
    if (part != nullptr && part(&of_part, handle) == cuda::kSuccess &&
        std::memcmp(of_part.bytes, of_board.bytes, sizeof of_part.bytes) != 0) {
      device.uuid = uuid_text("MIG-", of_part.bytes);
    }
  }
  dlclose(driver);
  return device;
}

DriverState driver_state() {
  namespace cuda = abi::cuda;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return DriverState::kAbsent;
  const auto current = reinterpret_cast<cuda::fn::CtxGetCurrent*>(dlsym(driver, "cuCtxGetCurrent"));
  cuda::Context context = nullptr;
  const bool started = current != nullptr && current(&context) != cuda::kNotInitialized;
  dlclose(driver);
  return started ? DriverState::kInitialised : DriverState::kLoaded;
}

}  // namespace jouleprof::cupti
