// What doctor does besides its list: it captures sensors, verifies units, and calibrates by a
// meter.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/all/open_meters.h"
#include "model/domain.h"
#include "recording/kernel_store.h"

namespace jouleprof::cli {

// Reads the probes of `meters` for `time`, each when it is due, and once at least. `got` has what
// each read gave. `also` is called in each round, and returns when it is to be called again.
void read_for(const std::vector<meters::Meter*>& meters, Duration time,
              const std::function<void(meters::Meter&, const model::Readings&)>& got,
              const std::function<HostTime()>& also = {});

// `doctor --capture`: what a machine's sensors show, as a tree of files that can be given away.
// Writes into `folder`, which must not exist or be empty:
// - sys/ and proc/: the files that meters read, laid out so that JOULEPROF_ROOT can name the
// folder.
//   Only files of a fixed list are copied: none has a serial number, a UUID, or the name of a host,
//   a user or a program;
// - readings.csv: what each sensor said for `time`, and AMD's gpu_metrics once a second;
// - sensors.txt: domains, sensors and what is missing.
// Errors: invalid_argument for a folder with something in it; of the file system.
Result<void> capture(meters::MeterSet& meters, const std::filesystem::path& folder, Duration time);

// Whether the counters of this machine count in their stated units, as doctor prints it.
// By meter and domain, in words; of domains that have a counter and a power sensor.
using UnitLooks = std::map<std::pair<const meters::Meter*, model::DomainId>, std::string>;

// Reads such domains for some seconds; returns at once where there is none.
UnitLooks look_at_units(meters::MeterSet& meters);

// `doctor --calibrate --wall`: the gain of a GPU's power sensor, from a meter at the supply.
struct WallCalibration {
  std::string wall;          // a meter as of --wall-meter, or a CSV file that grows meanwhile
  double file_error = 0.01;  // of a file's meter, at 95 %
  // The efficiency of the supply between meter and board: watts out for each watt more that goes
  // in.
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

// --- The result of `doctor` as text and as JSON ---

// The kernels that runs of this user remember.
struct RememberedKernels {
  std::filesystem::path path;  // empty: there is no folder for them
  Result<recording::KernelStoreState> state;
};
RememberedKernels remembered();

std::string doctor_text(const meters::MeterSet& found, const RememberedKernels& remembered,
                        const UnitLooks& units);
// Schema jouleprof.doctor/1. `calibration`: its result, where it was requested.
std::string doctor_json(const meters::MeterSet& found,
                        const std::optional<Result<void>>& calibration,
                        const RememberedKernels& remembered);

// --- A known power level of a board, in words ---

// "at rest 80.1 W ± 1 W, observed 2026-11-22 14:03:11 UTC at 31 °C"; `name`: "at rest".
std::string level_text(std::string_view name, const model::KnownLevel& level);

inline constexpr std::string_view kAtRest = "at rest";
inline constexpr std::string_view kHeld = "held by a context";

}  // namespace jouleprof::cli
