// Reads one probe and reports its failures.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

class ProbeReader {
 public:
  virtual ~ProbeReader() = default;
  // Appends the readings; returns when to read next.
  virtual HostTime read(model::Readings& out) = 0;
};

// The time between two reads of a lost device.
inline constexpr Duration kLostRetry = std::chrono::seconds(10);

// Whether a sensor works. A failure is reported when it begins or changes, not at every read.
class ReadState {
 public:
  void succeeded() { error_.reset(); }

  void failed(model::SensorId sensor, HostTime at, Error error, model::Readings& out) {
    if (error_ == error) return;
    error_ = error;
    out.failures.push_back({sensor, at, std::move(error)});
  }

 private:
  std::optional<Error> error_;
};

}  // namespace jouleprof::meters::nvml
