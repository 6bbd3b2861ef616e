// GPUs behind the kernel's graphics drivers, and what /sys shows of their state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace jouleprof::meters::hwmon
