// Reads a GPU's sensors as often as calibration needs: far more often than the meter does.
#pragma once

#include <stop_token>
#include <thread>
#include <vector>

#include "jouleprof/units.h"
#include "meters/nvml/gpu.h"
#include "model/device/readings.h"

namespace jouleprof::meters::nvml {

struct Watched {
  std::vector<model::PowerReading> ring;     // stamped by the driver
  std::vector<model::PowerReading> instant;  // polled each millisecond
  std::vector<model::PowerReading> average;  // the same
};

// Reads the power sensors on its own thread from construction on. A sensor that is missing or fails
// has no readings; without a thread, or where that fails, none has. On a superchip it reads the
// GPU's own power, else the module's. `api` and `gpu` must outlive it.
class SensorWatch {
 public:
  SensorWatch(const NvmlApi& api, const Gpu& gpu);
  SensorWatch(const SensorWatch&) = delete;
  SensorWatch& operator=(const SensorWatch&) = delete;
  ~SensorWatch();

  // Ends the thread and returns its readings. Call it once at most.
  Watched stop();

 private:
  void watch(const std::stop_token& stop);

  const NvmlApi& api_;
  const Gpu& gpu_;
  Watched watched_;
  std::stop_source stop_;
  std::thread thread_;  // last: it uses the members above
};

// Reads the energy counter for `length` without pauses (one read takes about 2.5 ms).
// Empty when a read fails.
std::vector<model::CounterReading> read_counter(const NvmlApi& api, const Gpu& gpu,
                                                Duration length);

}  // namespace jouleprof::meters::nvml
