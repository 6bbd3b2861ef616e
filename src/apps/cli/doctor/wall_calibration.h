// `doctor --calibrate --wall`: the gain of a GPU's power sensor, from a meter at the supply.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::cli {

struct WallCalibration {
  std::string wall;          // a meter as of --wall-meter, or a CSV file that grows meanwhile
  double file_error = 0.01;  // of a file's meter, at 95 %
  // Of the supply between meter and board: watts out for each watt more that goes in.
  double efficiency_low = 0.88;
  double efficiency_high = 0.97;
  std::string load;  // a command instead of the own load; empty: the own one, which needs CUDA
  std::vector<std::string> devices;
};

// "0.94" (within 1 %), or "0.92:0.95". Errors: invalid_argument.
Result<void> parse_efficiency(const std::string& text, WallCalibration& out);

// Puts load in steps on one GPU, regresses the meter's power on the GPU's, less what the
// processors' sensors show, and stores gain and interval by UUID (calibration_file.h). Takes about
// a minute; prints its progress on stderr. Errors: invalid_argument where more than one GPU is
// meant or an option is wrong; unavailable where the meter does not follow the load.
Result<void> calibrate_by_wall(const WallCalibration& options);

}  // namespace jouleprof::cli
