// Imports CSV files: power samples, reads of an energy counter and a timeline of kernels
// (docs/formats.md has the columns).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::importers {

struct CsvSources {
  // Empty: there is none. Each may be compressed with gzip.
  std::filesystem::path samples;
  std::filesystem::path counter;
  std::filesystem::path kernels;
  std::filesystem::path names;  // JSON: the kernels' names and the instant their times count from
  // "BEGIN:END": intervals in which nothing ran. Bare numbers are Unix seconds; with a unit ("7s")
  // they count from the first reading.
  std::vector<std::string> idle;
  std::string device_name;  // "NVIDIA H100 80GB HBM3"; its generation's traits are the sensors' own
  // What a sample is: "ring" (the driver's own stamped samples), "instant" or "average" (polled).
  std::string sampled = "ring";
  bool events = false;  // keep each kernel and not only its class's activity in bins
};

// One GPU ("gpu0") with its sensors and, where there are kernels, a trace. Host time begins at the
// first reading or kernel; clock points tie it to the wall clock. The work is the kernels' span, or
// all of the readings' where there are none.
//
// Errors: not_found, permission_denied for a file; invalid_argument when there is neither samples
// nor counter, or an option is wrong; corrupt, with file, line and column, for bad content;
// unavailable for a file without rows and when kernels and readings have no time in common.
Result<model::Recording> import_csv(const CsvSources& sources);

}  // namespace jouleprof::importers
