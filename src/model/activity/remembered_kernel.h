// The power of kernels that earlier runs resolved.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"

namespace jouleprof::model {

// What one run found for one kernel signature on one board, from its own readings alone.
struct RememberedKernel {
  std::string board;  // UUID of the GPU
  KernelClass kernel;
  Duration launch{};  // mean time of a launch: one signature may do different work
  Power power;        // above the held power, while no other launch runs
  Power error;        // half of its 95 % interval in that run, without the calibration error
  std::optional<double> sm_clock_hertz;  // mean while kernels ran; absent: not known
  RealTime observed{};                   // when the run began

  bool operator==(const RememberedKernel&) const = default;
};

}  // namespace jouleprof::model
