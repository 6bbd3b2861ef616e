#include <cstddef>

#include "nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {
namespace {

using abi::Architecture;

// Refresh and window in seconds; 0: no such sensor.
struct Timing {
  double refresh, window;
};

struct Board {
  const char* generation;
  Architecture architecture;
  int compute_capability[2];
  const char* name;
  std::uint64_t memory_gib;
  double idle_watts;
  double limits[3];  // minimum, default, maximum
  ClocksSpec clocks;
  Timing ring;
  double counter_refresh;
  Timing instant, average;
};

// clang-format off
constexpr Board kBoards[]{
  {"kepler", Architecture::kKepler, {3, 5}, "Tesla K40m", 12, 20, {150, 235, 235},
   {875, 324, 3004}, {}, 0, {0.02, 0.02}, {}},
  {"pascal", Architecture::kPascal, {6, 0}, "Tesla P100-PCIE-16GB", 16, 27, {125, 250, 250},
   {1328, 405, 715}, {0.02, 0.01}, 0, {0.02, 0.01}, {}},
  {"volta", Architecture::kVolta, {7, 0}, "Tesla V100-SXM2-16GB", 16, 40, {150, 300, 300},
   {1530, 135, 877}, {0.02, 0.01}, 0.1, {0.02, 0.01}, {}},
  {"turing", Architecture::kTuring, {7, 5}, "Tesla T4", 16, 10, {60, 70, 70},
   {1590, 300, 5001}, {0.1, 0.1}, 0.1, {0.1, 0.1}, {}},
  {"ampere", Architecture::kAmpere, {8, 0}, "NVIDIA A100-SXM4-80GB", 80, 60, {100, 400, 400},
   {1410, 210, 1593}, {0.02, 0.025}, 0.1, {0.1, 0.025}, {}},
  {"ga102", Architecture::kAmpere, {8, 6}, "NVIDIA A40", 45, 30, {100, 300, 300},
   {1740, 210, 7251}, {}, 0.1, {0.1, 0.1}, {0.1, 1}},
  {"ada", Architecture::kAda, {8, 9}, "NVIDIA GeForce RTX 4090", 24, 18, {150, 450, 600},
   {2520, 210, 10501}, {}, 0.106, {0.1, 0.1}, {0.1, 1}},
  {"hopper", Architecture::kHopper, {9, 0}, "NVIDIA H100 80GB HBM3", 80, 70, {200, 700, 700},
   {1980, 345, 2619}, {0.02, 0.003}, 0.1, {0.1, 0.025}, {0.1, 1}},
  {"grace_hopper", Architecture::kHopper, {9, 0}, "NVIDIA GH200 480GB", 95, 80, {100, 900, 900},
   {1980, 345, 2619}, {0.02, 0.025}, 0.1, {0.1, 0.02}, {0.1, 1}},
  {"blackwell", Architecture::kBlackwell, {10, 0}, "NVIDIA B200", 179, 140, {200, 1000, 1000},
   {1965, 120, 3996}, {0.02, 0.025}, 0.1, {0.1, 0.025}, {0.1, 1}},
  {"custom", Architecture::kUnknown, {0, 0}, "NVIDIA Simulated GPU", 16, 20, {50, 300, 300},
   {1500, 300, 1000}, {}, 0, {}, {}},
};
// clang-format on

template <typename Spec>
void set_timing(std::optional<Spec>& spec, Timing timing) {
  if (timing.refresh == 0) return;
  spec.emplace();
  spec->refresh = timing.refresh;
  spec->window = timing.window;
}

SensorsSpec sensors_of(const Board& board) {
  SensorsSpec s;
  set_timing(s.ring, board.ring);
  set_timing(s.instant, board.instant);
  set_timing(s.average, board.average);
  if (board.counter_refresh > 0) {
    s.counter = CounterSpec{
        .refresh = board.counter_refresh, .phase = 0.037, .delay_min = 0.0003, .delay_max = 0.016};
  }
  s.power_usage_is_average = s.average.has_value();
  if (!s.ring || !s.average) return s;
  // Hopper and later.
  const std::string_view generation = board.generation;
  s.ring->lag = 0.0025;
  if (generation == "hopper") {
    s.ring->lag = 0.0027;
    s.ring->rise = s.counter->rise = 0.014;
  }
  s.module_scope = s.covers_module = generation == "grace_hopper";
  s.gpu_scope = s.memory_scope = !s.module_scope;
  return s;
}

}  // namespace

const std::vector<std::string>& generation_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Board& board : kBoards) names.emplace_back(board.generation);
    return names;
  }();
  return kNames;
}

DeviceSpec preset(std::size_t generation) {
  const Board& board = kBoards[generation];
  DeviceSpec spec;
  spec.architecture = board.architecture;
  spec.compute_capability = {board.compute_capability[0], board.compute_capability[1]};
  spec.name = board.name;
  spec.memory_total_bytes = board.memory_gib << 30U;
  spec.memory_used_bytes = std::uint64_t{512} << 20U;
  spec.idle_watts = board.idle_watts;
  spec.limit.minimum_watts = board.limits[0];
  spec.limit.default_watts = board.limits[1];
  spec.limit.maximum_watts = board.limits[2];
  spec.clocks = board.clocks;
  spec.temperature.celsius_per_watt = 45 / spec.limit.default_watts;
  spec.sensors = sensors_of(board);
  if (spec.sensors.memory_scope) {
    spec.memory_idle_watts = board.idle_watts * 0.45;
    spec.memory_share = 0.1;
  }
  return spec;
}

}  // namespace jouleprof::nvml_sim
