// Reads a GPU's sensors as densely as calibrating needs, and no meter does.
#pragma once

#include <stop_token>
#include <thread>
#include <vector>

#include "jouleprof/units.h"
#include "meters/nvml/gpu.h"
#include "model/readings.h"

namespace jouleprof::cli {

struct Watched {
  std::vector<model::PowerReading> ring;     // stamped by the driver
  std::vector<model::PowerReading> instant;  // polled each millisecond
  std::vector<model::PowerReading> average;  // the same
};

// Reads the power sensors on a thread of its own, from construction on; a sensor that the GPU does
// not have, or that fails, gives nothing. Of a superchip the GPU's own power, where it is told.
// `api` and `gpu` must outlive it.
class SensorWatch {
 public:
  SensorWatch(const meters::nvml::NvmlApi& api, const meters::nvml::Gpu& gpu);

  // Ends the thread and gives out what it read. To be called once.
  Watched stop();

 private:
  void watch(const std::stop_token& stop);

  const meters::nvml::NvmlApi& api_;
  const meters::nvml::Gpu& gpu_;
  Watched watched_;
  std::jthread thread_;  // last: it uses what stands before
};

// Reads the energy counter for so long, as often as the driver lets (a read takes some 2.5 ms).
// Empty when a read fails.
std::vector<model::CounterReading> read_counter(const meters::nvml::NvmlApi& api,
                                                const meters::nvml::Gpu& gpu, Duration length);

}  // namespace jouleprof::cli
