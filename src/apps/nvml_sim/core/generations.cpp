#include "apps/nvml_sim/core/generations.h"

namespace jouleprof::nvml_sim {
namespace {

using abi::Architecture;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

struct Board {
  const char* generation;
  Architecture architecture;
  std::array<int, 2> compute_capability;
  const char* name;
  std::uint64_t memory_gib;
  double idle, limit_min, limit_default, limit_max;
  ClocksSpec clocks;
};

const std::vector<Board>& boards() {
  static const std::vector<Board> kBoards{
      {"kepler",
       Architecture::kKepler,
       {3, 5},
       "Tesla K40m",
       12,
       20,
       150,
       235,
       235,
       {875, 324, 3004}},
      {"pascal",
       Architecture::kPascal,
       {6, 0},
       "Tesla P100-PCIE-16GB",
       16,
       27,
       125,
       250,
       250,
       {1328, 405, 715}},
      {"volta",
       Architecture::kVolta,
       {7, 0},
       "Tesla V100-SXM2-16GB",
       16,
       40,
       150,
       300,
       300,
       {1530, 135, 877}},
      {"turing", Architecture::kTuring, {7, 5}, "Tesla T4", 16, 10, 60, 70, 70, {1590, 300, 5001}},
      {"ampere",
       Architecture::kAmpere,
       {8, 0},
       "NVIDIA A100-SXM4-80GB",
       80,
       60,
       100,
       400,
       400,
       {1410, 210, 1593}},
      {"ga102",
       Architecture::kAmpere,
       {8, 6},
       "NVIDIA A40",
       45,
       30,
       100,
       300,
       300,
       {1740, 210, 7251}},
      {"ada",
       Architecture::kAda,
       {8, 9},
       "NVIDIA GeForce RTX 4090",
       24,
       18,
       150,
       450,
       600,
       {2520, 210, 10501}},
      {"hopper",
       Architecture::kHopper,
       {9, 0},
       "NVIDIA H100 80GB HBM3",
       80,
       70,
       200,
       700,
       700,
       {1980, 345, 2619}},
      {"grace_hopper",
       Architecture::kHopper,
       {9, 0},
       "NVIDIA GH200 480GB",
       95,
       80,
       100,
       900,
       900,
       {1980, 345, 2619}},
      {"blackwell",
       Architecture::kBlackwell,
       {10, 0},
       "NVIDIA B200",
       179,
       140,
       200,
       1000,
       1000,
       {1965, 120, 3996}},
      {"custom",
       Architecture::kUnknown,
       {0, 0},
       "NVIDIA Simulated GPU",
       16,
       20,
       50,
       300,
       300,
       {1500, 300, 1000}},
  };
  return kBoards;
}

PolledSpec polled(double refresh, double window) {
  PolledSpec spec;
  spec.refresh = refresh;
  spec.window = window;
  return spec;
}

RingSpec ring(double refresh, double window) {
  RingSpec spec;
  spec.refresh = refresh;
  spec.window = window;
  return spec;
}

CounterSpec counter(double refresh) {
  CounterSpec spec;
  spec.refresh = refresh;
  spec.phase = 0.037;
  spec.delay_min = 0.0003;
  spec.delay_max = 0.016;
  return spec;
}

SensorsSpec sensors_of(std::string_view generation) {
  SensorsSpec s;
  if (generation == "kepler") {
    s.instant = polled(0.02, 0.02);
  } else if (generation == "pascal" || generation == "volta") {
    s.ring = ring(0.02, 0.01);
    s.instant = polled(0.02, 0.01);
    if (generation == "volta") s.counter = counter(0.1);
  } else if (generation == "turing") {
    s.ring = ring(0.1, 0.1);
    s.instant = polled(0.1, 0.1);
    s.counter = counter(0.1);
  } else if (generation == "ampere") {
    s.ring = ring(0.02, 0.025);
    s.instant = polled(0.1, 0.025);
    s.counter = counter(0.1);
  } else if (generation == "ga102" || generation == "ada") {
    s.instant = polled(0.1, 0.1);
    s.average = polled(0.1, 1);
    s.counter = counter(generation == "ada" ? 0.106 : 0.1);
    s.power_usage_is_average = true;
  } else if (generation == "hopper" || generation == "grace_hopper" || generation == "blackwell") {
    s.ring = ring(0.02, 0.025);
    s.ring->lag = 0.0025;
    s.instant = polled(0.1, 0.025);
    s.average = polled(0.1, 1);
    s.counter = counter(0.1);
    s.memory_scope = true;
    s.power_usage_is_average = true;
    if (generation == "hopper") {
      s.ring->window = 0.003;
      s.ring->lag = 0.0027;
      s.ring->rise = s.counter->rise = 0.014;
    }
    if (generation == "grace_hopper") {
      s.instant = polled(0.1, 0.02);
      s.gpu_scope = false;
      s.memory_scope = false;
      s.module_scope = true;
      s.covers_module = true;
    }
  }
  return s;
}

}  // namespace

const std::vector<std::string>& generation_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Board& board : boards()) names.emplace_back(board.generation);
    return names;
  }();
  return kNames;
}

DeviceSpec preset(std::string_view generation) {
  DeviceSpec spec;
  for (const Board& board : boards()) {
    if (generation != board.generation) continue;
    spec.generation = board.generation;
    spec.architecture = board.architecture;
    spec.compute_capability = board.compute_capability;
    spec.name = board.name;
    spec.memory_total_bytes = board.memory_gib * kGiB;
    spec.idle_watts = board.idle;
    spec.limit.minimum_watts = board.limit_min;
    spec.limit.default_watts = board.limit_default;
    spec.limit.maximum_watts = board.limit_max;
    spec.clocks = board.clocks;
    spec.temperature.celsius_per_watt = 45 / board.limit_default;
    spec.sensors = sensors_of(generation);
    if (spec.sensors.memory_scope) {
      spec.memory_idle_watts = board.idle * 0.45;
      spec.memory_share = 0.1;
    }
  }
  return spec;
}

}  // namespace jouleprof::nvml_sim
