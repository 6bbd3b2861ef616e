#include "meters/nvml/gpu_traits.h"

namespace jouleprof::meters::nvml {

using abi::Architecture;

namespace {

std::optional<model::GpuGeneration> generation_of(Architecture architecture) {
  using enum model::GpuGeneration;
  switch (architecture) {
    case Architecture::kPascal:
      return kPascal;
    case Architecture::kVolta:
      return kVolta;
    case Architecture::kTuring:
      return kTuring;
    case Architecture::kAmpere:
      return kAmpere;
    case Architecture::kAda:
      return kAda;
    case Architecture::kHopper:
      return kHopper;
    case Architecture::kBlackwell:
      return kBlackwell;
    default:
      return std::nullopt;
  }
}

}  // namespace

GpuTraits default_traits(const Generation& generation, bool module) {
  return model::default_traits(generation_of(generation.architecture), module);
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
