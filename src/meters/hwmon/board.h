// GPUs behind the kernel's graphics drivers, and what /sys shows of their state: files, and AMD's
// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::meters::hwmon {

struct Board {
  std::string driver;            // "amdgpu", "xe", ...
  std::string bus_address;       // "0000:03:00.0"; the card's or chip's name where unknown
  std::filesystem::path card;    // /sys/class/drm/card0; empty where there is none
  std::filesystem::path device;  // the device's own folder
  std::filesystem::path chip;    // its hwmon folder; empty where there is none
  std::size_t index = 0;         // among those of its driver, in the order of their addresses

  std::string domain() const;  // "amdgpu-0"
  std::string name() const;    // the product, else "AMD GPU at 0000:03:00.0"
  bool is_intel() const { return driver == "xe" || driver == "i915"; }
};

bool is_board_driver(std::string_view driver);

// Finds the boards of <root>/sys/class/drm. Partitions of a board (Instinct's CPX mode) are no
// boards: their devices are the driver's own, not the bus's. Without index.
std::vector<Board> find_cards(const std::filesystem::path& root);

// Sorted by driver and address, with their index.
std::vector<Board> number_boards(std::vector<Board> boards);

// A processor with graphics, or Instinct MI300A: its sensor sees the CPU cores, too.
bool is_apu(const Board& board);

// Instinct MI200: AMD's library documents 2^-16 J for the counter in its table, which the kernel's
// header does not. The driver fills the first die's only.
bool counts_as_instinct(const Board& board);

// Part of an Intel processor, whose package contains its energy.
bool is_integrated(const Board& board);

// A quantity of the board's state in one file.
struct StateFile {
  std::string_view gauge;  // see model/device/sensor.h
  std::filesystem::path file;
  double unit = 1;  // what 1 in the file is
};

// Finds the files that hold a number now. A limit of 0 means that there is none.
std::vector<StateFile> find_state(const Board& board);

// --- AMD's table of a GPU's or APU's state: /sys/class/drm/card*/device/gpu_metrics ---
// Layouts: drivers/gpu/drm/amd/include/kgd_pp_interface.h of Linux.

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

// Rounded down to whole microjoules; absent above 2^63 uJ.
std::optional<Energy> energy_of_counts(std::uint64_t counts, CountUnit unit);

}  // namespace jouleprof::meters::hwmon
