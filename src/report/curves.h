// Power over time, as formats draw it.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "model/device/power_step.h"

namespace jouleprof::report {

// The power of one domain over time. Steps are in order and do not overlap; time between two of
// them is not known.
struct PowerCurve {
  model::DomainId domain{};
  std::vector<model::PowerStep> steps;
};

// The weakest of the sensors that a domain's energy and power come from.
inline model::Provenance provenance_of(const model::Recording& recording, model::DomainId domain) {
  auto weakest = model::Provenance::kUnavailable;
  for (const auto& sensor : recording.sensors) {
    if (sensor.domain != domain || sensor.kind == model::SensorKind::kGauge) continue;
    weakest = model::combine(weakest, sensor.provenance);
  }
  return weakest;
}

// After a name: nothing for what is measured, else " ESTIMATED" or " SIMULATED".
inline std::string_view provenance_mark(model::Provenance provenance) {
  if (provenance == model::Provenance::kSimulated) return " SIMULATED";
  return provenance == model::Provenance::kEstimated ? " ESTIMATED" : "";
}

// Of every domain that has one. A GPU's steps may be shorter than those of other domains, which
// have slower sensors.
inline std::vector<PowerCurve> power_curves(const analysis::Run& run, const analysis::Part& part,
                                            Duration gpu_step,
                                            Duration step = std::chrono::milliseconds{100}) {
  std::vector<PowerCurve> curves;
  const auto& domains = run.recording().domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const bool gpu = domains[i].kind == model::DomainKind::kGpu;
    auto steps = run.curve(i, gpu ? gpu_step : step, part, model::StepErrors::kWanted);
    if (!steps.empty()) curves.push_back({domains[i].id, std::move(steps)});
  }
  return curves;
}

}  // namespace jouleprof::report
