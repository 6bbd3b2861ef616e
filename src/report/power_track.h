// Power over time, reduced to what a screen or a sheet of paper shows.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "analysis/run.h"

namespace jouleprof::report {

struct PowerTrack {
  struct Step {
    Energy energy;
    Energy error;          // half of the step's 95 % interval
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
};

// One for each domain with a power curve, of at most `steps` steps, which sum exactly. Of the whole
// recording the time before and after the command, too. `origin`: an edge between steps, where the
// command began.
std::vector<PowerTrack> power_tracks(const analysis::Run& run, const analysis::Part& part,
                                     HostTime origin, std::size_t steps);

}  // namespace jouleprof::report
