#include "meters/hwmon/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "meters/hwmon/gpu_metrics.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::hwmon {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDrivers{{
    {"amdgpu", "AMD GPU"},
    {"radeon", "AMD GPU"},
    {"nouveau", "NVIDIA GPU"},
    {"xe", "Intel GPU"},
    {"i915", "Intel GPU"},
}};

// "card12", not "card12-DP-1" (a connector).
bool is_card(std::string_view name) {
  return name.starts_with("card") && parse_integer(name.substr(4)).has_value();
}

// The value of KEY=value in a uevent file.
std::string uevent_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == '=') {
      return std::string(trim(line.substr(key.size() + 1)));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return "";
}

fs::path first_chip(const fs::path& device) {
  for (const auto& name : list_folder(device / "hwmon").value_or(std::vector<std::string>{})) {
    if (name.starts_with("hwmon")) return device / "hwmon" / name;
  }
  return {};
}

}  // namespace

std::string Board::domain() const { return fmt::format("{}-{}", driver, index); }

std::string Board::name() const {
  const auto product = read_attribute(device / "product_name");
  if (product && !product->empty()) return *product;
  for (const auto& [known, text] : kDrivers) {
    if (known == driver) return fmt::format("{} at {}", text, bus_address);
  }
  return fmt::format("{} GPU at {}", driver, bus_address);
}

bool is_board_driver(std::string_view driver) {
  return std::any_of(kDrivers.begin(), kDrivers.end(),
                     [&](const auto& known) { return known.first == driver; });
}

std::vector<Board> find_cards(const fs::path& root) {
  std::vector<Board> cards;
  const auto folder = root / "sys/class/drm";
  for (const auto& name : list_folder(folder).value_or(std::vector<std::string>{})) {
    if (!is_card(name)) continue;
    Board board;
    board.card = folder / name;
    board.device = board.card / "device";
    const auto uevent = read_file(board.device / "uevent");
    if (!uevent) continue;
    board.driver = uevent_value(*uevent, "DRIVER");
    board.bus_address = uevent_value(*uevent, "PCI_SLOT_NAME");
    if (!is_board_driver(board.driver) || board.bus_address.empty()) continue;
    board.chip = first_chip(board.device);
    cards.push_back(std::move(board));
  }
  return cards;
}

std::vector<Board> number_boards(std::vector<Board> boards) {
  const auto key = [](const Board& b) { return std::tie(b.driver, b.bus_address); };
  std::stable_sort(boards.begin(), boards.end(),
                   [&](const Board& a, const Board& b) { return key(a) < key(b); });
  boards.erase(std::unique(boards.begin(), boards.end(),
                           [&](const Board& a, const Board& b) { return key(a) == key(b); }),
               boards.end());
  for (std::size_t i = 1; i < boards.size(); ++i) {
    if (boards[i].driver == boards[i - 1].driver) boards[i].index = boards[i - 1].index + 1;
  }
  return boards;
}

bool is_apu(const Board& board) {
  if (board.driver != "amdgpu") return false;
  const auto metrics = read_file(board.device / "gpu_metrics");
  if (metrics && is_apu_table(*metrics)) return true;
  // MI300A has a board's table.
  if (read_attribute(board.device / "device").value_or("") == "0x74a0") return true;
  // The driver shows the voltage of a northbridge on APUs only.
  return read_attribute(board.chip / "in1_label").value_or("") == "vddnb";
}

bool counts_as_instinct(const Board& board) {
  constexpr std::array<std::string_view, 4> kMi200{"0x7408", "0x740c", "0x740f", "0x7410"};
  const auto id = read_attribute(board.device / "device").value_or("");
  return std::find(kMi200.begin(), kMi200.end(), id) != kMi200.end();
}

bool is_integrated(const Board& board) {
  return board.is_intel() && board.bus_address.ends_with(":00:02.0");
}

std::vector<StateFile> find_state(const Board& board) {
  namespace g = model::gauge;
  std::vector<StateFile> found;
  // The first of the files that answers.
  const auto add = [&](std::string_view gauge, double unit, std::initializer_list<fs::path> files,
                       bool zero_is_none = false) {
    for (const auto& file : files) {
      const auto value = read_integer(file);
      if (!value || *value < 0 || (zero_is_none && *value == 0)) continue;
      found.push_back({gauge, file, unit});
      return;
    }
  };
  const auto& chip = board.chip;
  // By label where the driver gives any: "edge", "mem", ...
  const auto labelled = [&](std::string_view kind, std::initializer_list<std::string_view> labels) {
    for (const std::string_view label : labels) {
      for (int i = 1; i <= 8; ++i) {
        const auto text = read_attribute(chip / fmt::format("{}{}_label", kind, i));
        if (text && *text == label) return chip / fmt::format("{}{}_input", kind, i);
      }
    }
    return fs::path{};
  };
  const auto& device = board.device;
  add(g::kSmClock, 1, {labelled("freq", {"sclk"})});
  add(g::kSmClock, 1e6,
      {board.card / "gt/gt0/rps_act_freq_mhz", device / "tile0/gt0/freq0/act_freq"});
  add(g::kMemoryClock, 1, {labelled("freq", {"mclk"})});
  const auto edge = labelled("temp", {"edge", "junction", "pkg"});
  add(g::kTemperature, 1e-3, {edge.empty() ? chip / "temp1_input" : edge}, true);
  add(g::kMemoryTemperature, 1e-3, {labelled("temp", {"mem", "vram"})}, true);
  add(g::kGpuUtilisation, 0.01, {device / "gpu_busy_percent"});
  add(g::kMemoryUtilisation, 0.01, {device / "mem_busy_percent"});
  add(g::kMemoryUsed, 1, {device / "mem_info_vram_used"});
  add(g::kPowerLimit, 1e-6, {chip / "power1_cap", chip / "power1_max", chip / "power2_max"}, true);
  add(g::kFanSpeed, 1.0 / 255, {chip / "pwm1"});
  return found;
}

}  // namespace jouleprof::meters::hwmon
