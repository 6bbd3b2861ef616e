#include "meters/nvml/api/nvml_error.h"

#include <fmt/format.h>

namespace jouleprof::meters::nvml {

using abi::Return;

bool is_lost(Return code) {
  return code == Return::kGpuIsLost || code == Return::kResetRequired ||
         code == Return::kUninitialized || code == Return::kDriverNotLoaded;
}

bool is_unsupported(Return code) {
  return code == Return::kNotSupported || code == Return::kFunctionNotFound ||
         code == Return::kDeprecated || code == Return::kArgumentVersionMismatch;
}

namespace {

Errc code_of(Return code) {
  if (is_unsupported(code)) return Errc::kUnsupported;
  switch (code) {
    case Return::kNoPermission:
    case Return::kOperatingSystem:
      return Errc::kPermissionDenied;
    case Return::kTimeout:
      return Errc::kTimeout;
    case Return::kNotFound:
    case Return::kGpuNotFound:
    case Return::kDriverNotLoaded:
    case Return::kLibraryNotFound:
      return Errc::kNotFound;
    default:
      return Errc::kUnavailable;
  }
}

}  // namespace

Error nvml_error(const NvmlApi& api, std::string_view what, Return code) {
  const char* words = api.error_string != nullptr ? api.error_string(code) : nullptr;
  if (words == nullptr) {
    return {code_of(code), fmt::format("{}: NVML error {}", what, static_cast<unsigned>(code))};
  }
  return {code_of(code), fmt::format("{}: {}", what, words)};
}

std::string fix_for(Return code) {
  switch (code) {
    case Return::kDriverNotLoaded:
      return "load the driver's kernel module (modprobe nvidia) or reboot";
    case Return::kLibRmVersionMismatch:
      return "the driver was updated while the old one is loaded: reboot, or unload and load the "
             "nvidia kernel modules; in a container, restart it";
    case Return::kNoPermission:
    case Return::kOperatingSystem:
      return "this user may not open /dev/nvidia*: ask for access to the device files; in a "
             "container, start it with the GPUs (docker run --gpus all)";
    case Return::kGpuIsLost:
      return "the GPU fell off the bus: see the Xid messages in the kernel's log, then reboot";
    case Return::kResetRequired:
      return "reset the GPU (nvidia-smi --gpu-reset) or reboot";
    case Return::kGpuNotFound:
      return "no NVIDIA GPU is visible here: check lspci and, in a container, its --gpus option";
    case Return::kFunctionNotFound:
      return "a newer NVIDIA driver offers it";
    default:
      return {};
  }
}

}  // namespace jouleprof::meters::nvml
