#include "meters/hwmon/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
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
  for (const auto& name : names_in(device / "hwmon")) {
    if (name.starts_with("hwmon")) return device / "hwmon" / name;
  }
  return {};
}

__extension__ using Wide = unsigned __int128;

// Where a number is in the table; `count` of them follow each other. Width 0: the version has none.
struct Place {
  std::size_t offset = 0;
  std::size_t width = 0;
  std::size_t count = 1;
};

// Fields of a layout, in bytes. `end`: the table is at least this long.
struct Layout {
  int format, first_content, last_content;
  std::size_t end;
  Place power, energy, system_clock, firmware_time;
  Place temperature, memory_temperature, gfx, memory;
  Place gfx_clock, memory_clock;
  Place average_gfx_clock = {}, average_memory_clock = {};
  Place hot_spot = {};
  double watts = 1;  // of a count of power; 0: the kernel does not name the unit
  bool is_average = true;
  CountUnit unit = CountUnit::kUndocumented;
  // Temperatures and utilisation of these versions have no unit in the header.
  bool has_state = true;
};

constexpr double kMilli = 1e-3;

constexpr std::array<Layout, 10> kLayouts{{
    // format, contents, end, power, energy, clock, firmware, temperature, memory's, busy x2, clocks
    {1,
     0,
     0,
     76,
     {34, 2},
     {36, 4},
     {8, 8},
     {},
     {16, 2},
     {20, 2},
     {28, 2},
     {30, 2},
     {54, 2},
     {58, 2},
     {40, 2},
     {44, 2},
     {18, 2}},
    {1,
     1,
     1,
     96,
     {22, 2},
     {24, 8},
     {32, 8},
     {},
     {4, 2},
     {8, 2},
     {16, 2},
     {18, 2},
     {54, 2},
     {58, 2},
     {40, 2},
     {44, 2},
     {6, 2}},
    {1,
     2,
     3,
     104,
     {22, 2},
     {24, 8},
     {32, 8},
     {96, 8},
     {4, 2},
     {8, 2},
     {16, 2},
     {18, 2},
     {54, 2},
     {58, 2},
     {40, 2},
     {44, 2},
     {6, 2}},
    {1,       4,       4,           282,      {10, 2},
     {24, 8}, {32, 8}, {232, 8},    {4, 2},   {6, 2},
     {12, 2}, {14, 2}, {240, 2, 8}, {280, 2}, {},
     {},      {},      1,           false,    CountUnit::kTwoToMinus16},
    {1,       5,       5,           354,      {10, 2},
     {88, 8}, {96, 8}, {304, 8},    {4, 2},   {6, 2},
     {12, 2}, {14, 2}, {312, 2, 8}, {352, 2}, {},
     {},      {},      1,           false,    CountUnit::kTwoToMinus16},
    {1,       6,       6,           306,      {10, 2},
     {16, 8}, {24, 8}, {256, 8},    {4, 2},   {6, 2},
     {12, 2}, {14, 2}, {264, 2, 8}, {304, 2}, {},
     {},      {},      1,           false,    CountUnit::kTwoToMinus16},
    {1,       7,       8,           338,      {10, 2},
     {24, 8}, {32, 8}, {288, 8},    {4, 2},   {6, 2},
     {12, 2}, {14, 2}, {296, 2, 8}, {336, 2}, {},
     {},      {},      1,           false,    CountUnit::kTwoToMinus16},
    {2,    0,  0,       86,      {44, 2}, {},      {8, 8}, {}, {},   {},
     {},   {}, {80, 2}, {84, 2}, {68, 2}, {72, 2}, {},     0,  true, CountUnit::kUndocumented,
     false},
    {2,    1,  4,       82,      {40, 2}, {},      {32, 8}, {}, {},   {},
     {},   {}, {76, 2}, {80, 2}, {64, 2}, {68, 2}, {},      0,  true, CountUnit::kUndocumented,
     false},
    // The socket's power includes a dGPU's; the APU's own does not.
    {3,       0,        0,        260,      {120, 4},
     {},      {104, 8}, {},       {},       {},
     {42, 2}, {},       {174, 2}, {186, 2}, {},
     {},      {},       kMilli,   true,     CountUnit::kUndocumented,
     true},
}};

std::uint64_t all_ones(std::size_t width) {
  return width >= 8 ? std::numeric_limits<std::uint64_t>::max()
                    : (std::uint64_t{1} << (8 * width)) - 1;
}

std::optional<std::uint64_t> read_at(std::string_view table, std::size_t offset,
                                     std::size_t width) {
  if (width == 0 || offset + width > table.size()) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = width; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(table[offset + i]);
  }
  return value == all_ones(width) ? std::nullopt : std::optional(value);
}

std::optional<std::uint64_t> read_at(std::string_view table, const Place& place) {
  return read_at(table, place.offset, place.width);
}

// The greatest of several dies', where any has one.
std::optional<double> greatest(std::string_view table, const Place& place, double unit) {
  std::optional<double> most;
  for (std::size_t i = 0; i < place.count; ++i) {
    const auto value = read_at(table, place.offset + i * place.width, place.width);
    if (value && *value > 0) {
      most = std::max(most.value_or(0), static_cast<double>(*value) * unit);
    }
  }
  return most;
}

std::optional<double> ratio(std::string_view table, const Place& place) {
  const auto percent = read_at(table, place);
  if (!percent || *percent > 100) return std::nullopt;
  return static_cast<double>(*percent) / 100.0;
}

void read_state(std::string_view table, const Layout& layout, GpuMetrics& out) {
  constexpr double kMegahertz = 1e6;
  out.gfx_clock_hertz = greatest(table, layout.gfx_clock, kMegahertz);
  if (!out.gfx_clock_hertz) {
    out.gfx_clock_hertz = greatest(table, layout.average_gfx_clock, kMegahertz);
  }
  out.memory_clock_hertz = greatest(table, layout.memory_clock, kMegahertz);
  if (!out.memory_clock_hertz) {
    out.memory_clock_hertz = greatest(table, layout.average_memory_clock, kMegahertz);
  }
  if (!layout.has_state) return;
  out.temperature_celsius = greatest(table, layout.temperature, 1);
  if (!out.temperature_celsius) out.temperature_celsius = greatest(table, layout.hot_spot, 1);
  out.memory_temperature_celsius = greatest(table, layout.memory_temperature, 1);
  out.gfx_utilisation = ratio(table, layout.gfx);
  out.memory_utilisation = ratio(table, layout.memory);
}

// Whether AMD's table is an APU's, whatever its version.
bool is_apu_table(std::string_view table) {
  return table.size() > 3 && (table[2] == 2 || table[2] == 3);
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
  return std::ranges::any_of(kDrivers, [&](const auto& known) { return known.first == driver; });
}

std::vector<Board> find_cards(const fs::path& root) {
  std::vector<Board> cards;
  const auto folder = root / "sys/class/drm";
  for (const auto& name : names_in(folder)) {
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
  std::ranges::stable_sort(boards, [&](const Board& a, const Board& b) { return key(a) < key(b); });
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
  return std::ranges::find(kMi200, id) != kMi200.end();
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

std::string GpuMetrics::version() const { return fmt::format("v{}.{}", format, content); }

Result<GpuMetrics> parse_gpu_metrics(std::string_view table) {
  if (table.size() < 4) {
    return fail(Errc::kCorrupt, fmt::format("gpu_metrics has {} bytes, too few", table.size()));
  }
  GpuMetrics out;
  out.format = static_cast<unsigned char>(table[2]);
  out.content = static_cast<unsigned char>(table[3]);
  const auto layout = std::ranges::find_if(kLayouts, [&](const Layout& l) {
    return l.format == out.format && l.first_content <= out.content &&
           out.content <= l.last_content;
  });
  if (layout == kLayouts.end()) {
    return fail(Errc::kUnsupported,
                fmt::format("gpu_metrics {} is not known to jouleprof", out.version()));
  }
  // The header states the size of the structure; what sysfs hands out may be a whole page.
  const auto stated = read_at(table, 0, 2);
  if (!stated || *stated < layout->end || table.size() < layout->end) {
    return fail(Errc::kCorrupt, fmt::format("gpu_metrics {} has {} of at least {} bytes",
                                            out.version(), table.size(), layout->end));
  }
  const double watts = out.format == 2 && out.content == 4 ? kMilli : layout->watts;
  const auto power = read_at(table, layout->power);
  if (power && watts > 0) out.socket_power = Power::watts(static_cast<double>(*power) * watts);
  out.power_is_average = layout->is_average;
  out.energy_count = read_at(table, layout->energy);
  out.count_unit = layout->unit;
  // Boards before v1.4 fill the field from a counter of 32 bits, but for Instinct's.
  out.count_bits = layout->unit == CountUnit::kUndocumented ? 32 : 64;
  out.system_clock = read_at(table, layout->system_clock);
  out.firmware_time = read_at(table, layout->firmware_time);
  read_state(table, *layout, out);
  return out;
}

std::optional<Energy> energy_of_counts(std::uint64_t counts, CountUnit unit) {
  if (unit != CountUnit::kTwoToMinus16) return std::nullopt;
  // 1e6 / 2^16 = 15625 / 2^10.
  const auto micro = static_cast<Wide>(counts) * 15625U / 1024U;
  if (micro > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return Energy::microjoules(static_cast<std::int64_t>(micro));
}

}  // namespace jouleprof::meters::hwmon
