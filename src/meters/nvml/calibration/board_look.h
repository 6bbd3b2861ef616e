// What a board's gauges say about contexts on it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "meters/nvml/nvml_meter.h"

namespace jouleprof::meters::nvml {

struct BoardLook {
  std::optional<double> processes;  // that the driver lists
  std::optional<double> sm_clock;   // hertz
  std::optional<double> utilisation;
  std::optional<double> temperature;  // degrees Celsius

  // Why the board is not at rest; absent when it is. Without a list of processes and without a
  // clock that is unknown, which is a reason, too.
  std::optional<std::string> not_at_rest() const;
};

// Reads the gauges and the processes of one GPU.
BoardLook look_at(NvmlMeter& meter, const Gpu& gpu);

}  // namespace jouleprof::meters::nvml
