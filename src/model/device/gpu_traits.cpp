#include "model/device/gpu_traits.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

namespace jouleprof::model {

using namespace std::chrono_literals;

namespace {

SensorTraits traits(Duration refresh, Duration window) {
  SensorTraits t;
  t.refresh = refresh;
  t.window = window;
  return t;
}

SensorTraits instant_traits(std::optional<GpuGeneration> generation) {
  if (!generation) return {};
  switch (*generation) {
    case GpuGeneration::kPascal:
    case GpuGeneration::kVolta:
      return traits(20ms, 10ms);
    case GpuGeneration::kTuring:
      return traits(100ms, 100ms);
    case GpuGeneration::kAmpere:
    case GpuGeneration::kAda:
    case GpuGeneration::kHopper:
    case GpuGeneration::kBlackwell:
      return traits(100ms, 25ms);
  }
  return {};
}

}  // namespace

std::optional<GpuGeneration> generation_of(std::string_view device_name) {
  using enum GpuGeneration;
  // Whole words of product names, so that no name is taken for another's ("A10" in "A100").
  constexpr std::array<std::pair<std::string_view, GpuGeneration>, 27> kWords{{
      {"P100", kPascal},    {"P40", kPascal},      {"P4", kPascal},       {"V100", kVolta},
      {"V100S", kVolta},    {"T4", kTuring},       {"A100", kAmpere},     {"A800", kAmpere},
      {"A40", kAmpere},     {"A30", kAmpere},      {"A10", kAmpere},      {"A10G", kAmpere},
      {"A16", kAmpere},     {"A2", kAmpere},       {"L40", kAda},         {"L40S", kAda},
      {"L4", kAda},         {"H100", kHopper},     {"H200", kHopper},     {"H800", kHopper},
      {"H20", kHopper},     {"GH200", kHopper},    {"B100", kBlackwell},  {"B200", kBlackwell},
      {"B300", kBlackwell}, {"GB200", kBlackwell}, {"GB300", kBlackwell},
  }};
  while (!device_name.empty()) {
    const auto end = device_name.find_first_of(" -");
    const std::string_view word = device_name.substr(0, end);
    for (const auto& [name, generation] : kWords) {
      if (word == name) return generation;
    }
    if (end == std::string_view::npos) break;
    device_name.remove_prefix(end + 1);
  }
  return std::nullopt;
}

double gain_error_of(std::optional<GpuGeneration> generation) {
  const bool stated = generation && (*generation == GpuGeneration::kHopper ||
                                     *generation == GpuGeneration::kBlackwell);
  return stated ? 0.05 : 0.08;
}

GpuTraits default_traits(std::optional<GpuGeneration> generation, bool module) {
  GpuTraits t;
  t.counter.refresh = 100ms;
  t.counter.quantum = Energy::millijoules(1);
  t.instant = instant_traits(generation);
  if (module) t.instant = traits(100ms, 20ms);
  t.ring.refresh = 20ms;
  t.ring.window = t.instant.window.value_or(25ms);
  t.ring.lag = Duration(2500us);
  if (generation == GpuGeneration::kHopper && !module) {
    t.ring.window = 3ms;
    t.ring.lag = Duration(2700us);
    t.ring.rise = t.counter.rise = 14ms;
  }
  t.average = traits(100ms, 1s);
  for (SensorTraits* sensor : {&t.counter, &t.ring, &t.instant, &t.average}) {
    sensor->gain_error = gain_error_of(generation);
  }
  return t;
}

std::string amd_uuid(std::string_view unique_id) {
  const bool is_number =
      unique_id.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!is_number || unique_id.find_first_not_of('0') == std::string_view::npos) return {};
  return "GPU-" + std::string(unique_id);
}

}  // namespace jouleprof::model
