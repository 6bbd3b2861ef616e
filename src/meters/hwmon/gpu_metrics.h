// AMD's table of a GPU's or APU's state: /sys/class/drm/card*/device/gpu_metrics.
// Layouts: drivers/gpu/drm/amd/include/kgd_pp_interface.h of Linux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::meters::hwmon {

// What one count of the energy accumulator is.
enum class CountUnit {
  kUndocumented,  // up to v1.3 the kernel names no unit, and boards differ
  kTwoToMinus16,  // J: from v1.4 on
};

// A value that the firmware does not fill (all bits set) is absent.
struct GpuMetrics {
  int format = 0;  // 1: a board; 2 and 3: an APU
  int content = 0;

  // The power of the socket: all dies in it, and of an APU its CPU cores, too. Absent as well where
  // the kernel does not name the unit (v2.0 to v2.3).
  std::optional<Power> socket_power;
  bool power_is_average = false;
  std::optional<std::uint64_t> energy_count;
  CountUnit count_unit = CountUnit::kUndocumented;
  int count_bits = 64;                         // the accumulator restarts from zero after these
  std::optional<std::uint64_t> system_clock;   // ns, when the driver read the table
  std::optional<std::uint64_t> firmware_time;  // of the values, in units of 10 ns

  std::optional<double> temperature_celsius;  // edge, else the hottest spot
  std::optional<double> memory_temperature_celsius;
  std::optional<double> gfx_utilisation;     // 0 to 1
  std::optional<double> memory_utilisation;  // 0 to 1
  std::optional<double> gfx_clock_hertz;     // the highest of the dies
  std::optional<double> memory_clock_hertz;

  bool is_apu() const { return format == 2 || format == 3; }
  std::string version() const;  // "v1.3"
};

// Errors: corrupt for a table that is shorter than its version; unsupported for an unknown version.
Result<GpuMetrics> parse_gpu_metrics(std::string_view table);

// Whether the table is an APU's, whatever its version.
bool is_apu_table(std::string_view table);

// Rounded down to whole microjoules; absent above 2^63 uJ.
std::optional<Energy> energy_of_counts(std::uint64_t counts, CountUnit unit);

}  // namespace jouleprof::meters::hwmon
