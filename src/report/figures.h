// What screens and sheets of paper show of a profile: power over time, parts of energies, windows.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "model/domain.h"
#include "model/profile.h"

namespace jouleprof::report {

// Power over time, reduced to what a screen or a sheet of paper shows.
struct PowerTrack {
  struct Step {
    Energy energy;
    Energy error;          // to the farther end of the step's 95 % interval
    Energy repeatability;  // of the first step's begin to this one's end, likewise, without the
                           // calibration error
  };
  model::DomainId id{};
  HostTime begin{};  // of the first step
  HostTime end{};    // of the last one
  Duration step{};
  Duration resolution{};                   // of the sensor
  std::vector<std::optional<Step>> steps;  // one after the other; absent where nothing was read
  // The least and the greatest watts within each step; empty unless steps are longer than the
  // sensor's resolution.
  std::vector<std::optional<std::pair<double, double>>> extremes;
  double calibration_ratio = 0;  // the calibration error, relative
  // The latest time of readings that have no steps here: they are stamped far after all others.
  std::optional<HostTime> left_out;
};

// One for each domain with a power curve, of at most `steps` steps, which sum exactly. Of the whole
// recording the time before and after the command, too. `origin`: an edge between steps, where the
// command began.
std::vector<PowerTrack> power_tracks(const analysis::Run& run, const analysis::Part& part,
                                     HostTime origin, std::size_t steps);

// --- What a domain's energy consists of, for a bar: parts that sum to it exactly ---

struct BalancePart {
  std::string_view label;                   // as in the glossary: "rest", "held", ...
  std::string_view colour;                  // safe for the colour-blind, and the page's
  Energy energy;                            // negative of unattributed energy at most
  std::optional<model::Measurement> level;  // of rest, held and active energy as they were found
};

// Parts of zero joules are left out. Empty for a domain without an energy.
std::vector<BalancePart> balance_parts(const model::Profile& profile,
                                       const model::DomainProfile& domain);

// --- Power over time, as formats draw it ---

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

// The curve of every domain that has one. A GPU's steps may be shorter than those of other domains,
// which have slower sensors.
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

// "gpu0 power (W)", "package-0 cpu power (W) ESTIMATED".
std::string power_track_name(const model::Recording& recording, const model::Domain& domain);

// --- The energies of windows, as formats write them ---

// The energy of a window in the domain at this place of the recording's list.
using WindowEnergyOf =
    std::function<Result<model::Measurement>(const model::Window& window, std::size_t domain)>;

// `run` outlives it.
inline WindowEnergyOf window_energy_of(const analysis::Run& run) {
  return [&run](const model::Window& window, std::size_t domain) {
    return run.energy(domain, window);
  };
}

}  // namespace jouleprof::report
