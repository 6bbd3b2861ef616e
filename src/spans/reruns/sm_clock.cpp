#include "spans/reruns/sm_clock.h"

#include <utility>

namespace jouleprof::reruns {
namespace {

constexpr unsigned long long kIdle = 1;  // nvmlClocksEventReasonGpuIdle

}  // namespace

SmClock::SmClock(const std::string& uuid) {
  auto library = DynLib::open("libnvidia-ml.so.1");
  if (!library) return;
  abi::fn::Init_v2* init = nullptr;
  abi::fn::DeviceGetHandleByUUID* by_uuid = nullptr;
  const bool complete = library->bind(init, "nvmlInit_v2") &&
                        library->bind(by_uuid, "nvmlDeviceGetHandleByUUID") &&
                        library->bind(clock_, "nvmlDeviceGetClockInfo");
  if (!library->bind(reasons_, "nvmlDeviceGetCurrentClocksEventReasons")) {
    library->bind(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  library_ = std::move(*library);
  if (!complete || init() != abi::Return::kSuccess) return;
  if (by_uuid(uuid.c_str(), &device_) != abi::Return::kSuccess) device_ = nullptr;
}

double SmClock::hertz() const {
  unsigned mhz = 0;
  if (device_ == nullptr || clock_(device_, abi::ClockType::kSm, &mhz) != abi::Return::kSuccess) {
    return 0;
  }
  return 1e6 * mhz;
}

double SmClock::busy_hertz() const {
  unsigned long long reasons = 0;
  if (device_ == nullptr || reasons_ == nullptr ||
      reasons_(device_, &reasons) != abi::Return::kSuccess || (reasons & kIdle) != 0) {
    return 0;
  }
  return hertz();
}

}  // namespace jouleprof::reruns
