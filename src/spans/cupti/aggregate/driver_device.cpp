#include "spans/cupti/aggregate/driver_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "abi/cuda_abi.h"
#include "base/process/dynlib.h"

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
  const DynLib driver = DynLib::loaded(cuda::kLibrary);
  cuda::fn::DeviceGet* get = nullptr;
  cuda::fn::DeviceGetUuid* board = nullptr;
  cuda::fn::DeviceGetUuid_v2* part = nullptr;
  driver.bind(get, "cuDeviceGet");
  driver.bind(board, "cuDeviceGetUuid");
  driver.bind(part, "cuDeviceGetUuid_v2");
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
  return device;
}

DriverState driver_state() {
  namespace cuda = abi::cuda;
  const DynLib driver = DynLib::loaded(cuda::kLibrary);
  if (!driver) return DriverState::kAbsent;
  cuda::fn::CtxGetCurrent* current = nullptr;
  cuda::Context context = nullptr;
  const bool started =
      driver.bind(current, "cuCtxGetCurrent") && current(&context) != cuda::kNotInitialized;
  return started ? DriverState::kInitialised : DriverState::kLoaded;
}

}  // namespace jouleprof::cupti
