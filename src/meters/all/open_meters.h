// All meters; the one place that lists them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jouleprof/units.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct MeterOptions {
  Demand demand;
  std::optional<Power> cpu_tdp;  // for the estimate
  // Those of GPUs that the user chose; others are not opened. Empty: all.
  std::vector<std::string> devices;
};

struct MeterSet {
  std::vector<std::unique_ptr<Meter>> meters;
  std::vector<Missing> missing;  // of all meters, and of those that could not be opened

  // At least one sensor of energy or power that is not a model.
  bool can_measure() const;
};

// Opens all sensors of this machine. Those that cannot be opened are in `missing`, and so are GPUs
// whose driver does not answer within 10 s. The domains gpu,
// cpu and dram are always present; without a sensor they carry the reason. JOULEPROF_NVML_LIBRARY
// names another NVML library; JOULEPROF_ROOT another root for /sys and /proc (for tests). Errors:
// invalid_argument for a device that does not exist.
Result<MeterSet> open_meters(const MeterOptions& options);

}  // namespace jouleprof::meters
