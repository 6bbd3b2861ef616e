#include "nvml_sim/core/return_names.h"

namespace jouleprof::nvml_sim {
namespace {

using abi::Return;

struct Code {
  Return code;
  std::string_view name;
  const char* text;
};

// clang-format off
constexpr Code kCodes[]{
  {Return::kSuccess, "NVML_SUCCESS", "Success"},
  {Return::kUninitialized, "NVML_ERROR_UNINITIALIZED", "Uninitialized"},
  {Return::kInvalidArgument, "NVML_ERROR_INVALID_ARGUMENT", "Invalid Argument"},
  {Return::kNotSupported, "NVML_ERROR_NOT_SUPPORTED", "Not Supported"},
  {Return::kNoPermission, "NVML_ERROR_NO_PERMISSION", "Insufficient Permissions"},
  {Return::kAlreadyInitialized, "NVML_ERROR_ALREADY_INITIALIZED", "Already Initialized"},
  {Return::kNotFound, "NVML_ERROR_NOT_FOUND", "Not Found"},
  {Return::kInsufficientSize, "NVML_ERROR_INSUFFICIENT_SIZE", "Insufficient Size"},
  {Return::kInsufficientPower, "NVML_ERROR_INSUFFICIENT_POWER", "Insufficient External Power"},
  {Return::kDriverNotLoaded, "NVML_ERROR_DRIVER_NOT_LOADED", "Driver Not Loaded"},
  {Return::kTimeout, "NVML_ERROR_TIMEOUT", "Timeout"},
  {Return::kIrqIssue, "NVML_ERROR_IRQ_ISSUE", "Interrupt Request Issue"},
  {Return::kLibraryNotFound, "NVML_ERROR_LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"},
  {Return::kFunctionNotFound, "NVML_ERROR_FUNCTION_NOT_FOUND", "Function Not Found"},
  {Return::kCorruptedInforom, "NVML_ERROR_CORRUPTED_INFOROM", "Corrupted infoROM"},
  {Return::kGpuIsLost, "NVML_ERROR_GPU_IS_LOST", "GPU is lost"},
  {Return::kResetRequired, "NVML_ERROR_RESET_REQUIRED", "GPU requires restart"},
  {Return::kOperatingSystem, "NVML_ERROR_OPERATING_SYSTEM",
   "The operating system has blocked the request"},
  {Return::kLibRmVersionMismatch, "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
   "Driver/library version mismatch"},
  {Return::kInUse, "NVML_ERROR_IN_USE", "In use by another client"},
  {Return::kMemory, "NVML_ERROR_MEMORY", "Insufficient Memory"},
  {Return::kNoData, "NVML_ERROR_NO_DATA", "No data"},
  {Return::kVgpuEccNotSupported, "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED",
   "The requested vgpu operation is not available with ECC enabled"},
  {Return::kInsufficientResources, "NVML_ERROR_INSUFFICIENT_RESOURCES", "Insufficient resources"},
  {Return::kFreqNotSupported, "NVML_ERROR_FREQ_NOT_SUPPORTED", "Frequency not supported"},
  {Return::kArgumentVersionMismatch, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
   "Argument version mismatch"},
  {Return::kDeprecated, "NVML_ERROR_DEPRECATED", "Deprecated"},
  {Return::kNotReady, "NVML_ERROR_NOT_READY", "Not ready"},
  {Return::kGpuNotFound, "NVML_ERROR_GPU_NOT_FOUND", "No GPUs found"},
  {Return::kInvalidState, "NVML_ERROR_INVALID_STATE", "Invalid state"},
  {Return::kUnknown, "NVML_ERROR_UNKNOWN", "Unknown Error"},
};
// clang-format on

}  // namespace

const char* error_string(Return code) {
  for (const Code& c : kCodes) {
    if (c.code == code) return c.text;
  }
  return "Unknown Error";
}

std::optional<Return> parse_return_name(std::string_view name) {
  for (const Code& c : kCodes) {
    if (c.name == name) return c.code;
  }
  return std::nullopt;
}

}  // namespace jouleprof::nvml_sim
