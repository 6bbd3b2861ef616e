// The figures of one run that a comparison needs, without its readings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "base/clock.h"

namespace jouleprof::analysis {

enum class CompareBy { kTotal, kWindow, kPhase, kLayer, kKernel };

// A positive figure in joules, seconds or watts.
struct Figure {
  std::optional<double> value;
  // Half-widths of 95 % intervals, relative to the value: without the calibration error of the
  // sensors, and of that error alone, by the domain's label.
  double repeatability = 0;
  std::map<std::string, double> calibration = {};
  bool estimated = false;
  std::string reason = {};  // why there is no value
  // Joules: the upper bound of one that is not above zero.
  std::optional<double> at_most = {};
};

// A window's name, a phase, a layer or a kernel.
struct FigureRow {
  std::string name;
  std::string detail;       // with the name, what a row is matched by: shapes, or grid and block
  std::uint64_t count = 0;  // of windows, calls or launches
  Figure energy;            // of windows: per window; above idle otherwise
  Figure time;
};

// What has to be alike for a difference to be the work's. What was not recorded is absent.
struct Conditions {
  std::map<std::string, double> power_limits;  // in watts, by device
  std::optional<double> sm_megahertz;          // mean over the run, of all GPUs
  std::optional<double> start_celsius;         // of the hottest GPU
  std::optional<double> limited_by_heat;       // share of the readings
  std::optional<int> exit_status;
  bool complete = true;
  bool simulated = false;
  bool traced = false;
  bool per_unit = false;
  // Counts of windows by name, and of models' calls; with `per_unit`, of one unit.
  std::map<std::string, double> work;
};

// Power of one domain over the time since the command began, in equal steps.
struct RunCurve {
  std::string domain;  // its label
  Duration step{};
  std::vector<std::optional<double>> watts;  // absent where nothing was read
};

struct RunFigures {
  std::string name;  // of its file
  std::string host;
  std::string boot_id;
  std::optional<RealTime> started;
  Duration length{};
  // Domains in the total by their labels, each with what identifies its sensor: the GPU's UUID,
  // else host, device and product.
  std::map<std::string, std::string> boards;
  std::vector<std::string> excluded;  // domains outside of the total, each with the reason
  Conditions conditions;
  // What `energy` is of: the command, or whole devices.
  bool is_command = false;
  // Joules at rest within `energy`, by domain's label: of devices that no other family used.
  std::map<std::string, double> rest;
  // Devices whose energy at rest is within `energy` and not known by itself.
  std::set<std::string> rest_in_shares;
  Figure energy;
  Figure time;
  Figure power;
  std::vector<FigureRow> rows;   // of `by`
  std::vector<RunCurve> curves;  // of the domains in the total; empty unless wanted
};

struct FigureOptions {
  CompareBy by = CompareBy::kTotal;
  std::string per;  // windows of this name are the unit of the work; empty: the whole run
  bool whole_machine = false;   // energies of whole devices, not of the command
  std::size_t curve_steps = 0;  // of each curve, about; 0: no curves
};

// Where a device's energy at rest is in some only of the runs that have the device, leaves it out
// of all: energy and power of a run that has it and does not know it become absent. Returns the
// labels of such devices.
std::vector<std::string> align_rest(std::vector<RunFigures>& before,
                                    std::vector<RunFigures>& after);

// The energy of a run is the command's (docs/glossary.md); that of a window is its devices'.
// With `per`, rows of phases, layers and kernels are of one unit, too. Energies are sums over
// visible domains that do not contain one another and were measured; over estimated ones where none
// was. Errors: as Run::profile's and Run::activity's; not_found where no window is named `per`;
// unavailable where no energy is known.
Result<RunFigures> figures_of(const Run& run, std::string name, const FigureOptions& options);

}  // namespace jouleprof::analysis
