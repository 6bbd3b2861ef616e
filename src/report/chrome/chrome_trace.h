// A recording as a trace in Chrome's JSON format, for ui.perfetto.dev and chrome://tracing.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/recording.h"
#include "report/figures.h"

namespace jouleprof::report {

struct ChromeTraceParts {
  const std::vector<model::ActivityProfile>* profiles = nullptr;  // of attribution
  std::vector<PowerCurve> curves;
  WindowEnergyOf window_energy;  // may be empty
  std::string version;           // of the tool
  // The counter of how busy a device was has no shorter steps; its bins may be longer.
  Duration busy_step{};
  // Only what begins in this part.
  HostTime begin = HostTime::min();
  HostTime end = HostTime::max();

  bool holds(HostTime t) const { return t >= begin && t < end; }
};

// Times count from the part's begin, or from the first thing there is; "baseTimeNanoseconds" ties
// them to the wall clock. In it are
//  - the power of each domain, as a counter;
//  - where each launch was kept: launches as slices by device and stream, with energy, interval,
//    power above idle and shape, and above them the layers and ranges that launched them;
//  - where not: how busy each device was, as a counter;
//  - windows, with their energies;
//  - when layers and kernels were run alone after the program's work (--replay).
// Writes as it goes: takes no memory for the launches. Energies are as in torch's annotated traces
// (docs/formats.md).
// Errors: corrupt, when a chunk of the recording can't be decoded.
Result<void> write_chrome_trace(std::ostream& out, const model::Recording& recording,
                                const ChromeTraceParts& parts);

}  // namespace jouleprof::report
