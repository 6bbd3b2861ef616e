#include "meters/nvml/gpu_traits.h"

#include <chrono>

namespace jouleprof::meters::nvml {

using abi::Architecture;
using namespace std::chrono_literals;

namespace {

model::SensorTraits traits(Duration refresh, Duration window) {
  model::SensorTraits t;
  t.refresh = refresh;
  t.window = window;
  return t;
}

std::optional<model::SensorTraits> instant_traits(Architecture architecture) {
  switch (architecture) {
    case Architecture::kPascal:
    case Architecture::kVolta:
      return traits(20ms, 10ms);
    case Architecture::kTuring:
      return traits(100ms, 100ms);
    case Architecture::kAmpere:
    case Architecture::kAda:
    case Architecture::kHopper:
    case Architecture::kBlackwell:
      return traits(100ms, 25ms);
    default:
      return std::nullopt;
  }
}

}  // namespace

GpuTraits default_traits(const Generation& generation, bool module) {
  GpuTraits t;
  t.counter.refresh = 100ms;
  t.counter.quantum = Energy::millijoules(1);
  t.instant = instant_traits(generation.architecture).value_or(model::SensorTraits{});
  if (module) t.instant = traits(100ms, 20ms);
  t.ring.refresh = 20ms;
  t.ring.window = t.instant.window.value_or(25ms);
  t.ring.lag = Duration(2500us);
  if (generation.architecture == Architecture::kHopper && !module) {
    t.ring.window = 3ms;
    t.ring.lag = Duration(2700us);
    t.ring.rise = t.counter.rise = 14ms;
  }
  t.average = traits(100ms, 1s);
  return t;
}

bool power_usage_is_instant(const Generation& generation) {
  if (generation.architecture == Architecture::kAmpere) {
    return generation.major == 8 && generation.minor == 0;  // GA100
  }
  return generation.architecture <= Architecture::kTuring;
}

model::SensorTraits overlay(model::SensorTraits base, const model::SensorTraits& calibrated) {
  if (calibrated.refresh) base.refresh = calibrated.refresh;
  if (calibrated.window) {  // of one fit
    base.window = calibrated.window;
    base.rise = calibrated.rise;
  } else if (calibrated.rise) {
    base.rise = calibrated.rise;
  }
  if (calibrated.lag) base.lag = calibrated.lag;
  return base;
}

GpuTraits overlay(const GpuTraits& base, const GpuTraits& calibrated) {
  return {overlay(base.counter, calibrated.counter), overlay(base.ring, calibrated.ring),
          overlay(base.instant, calibrated.instant), overlay(base.average, calibrated.average)};
}

}  // namespace jouleprof::meters::nvml
