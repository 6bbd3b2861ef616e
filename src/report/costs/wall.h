// A wall meter, compared with the domains of a run: a scope of its own, in no total.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/job/job.h"
#include "analysis/recording_checks.h"
#include "analysis/run.h"
#include "base/result.h"
#include "model/wall_log.h"
#include "report/cells.h"

namespace jouleprof::report {

// What the meter reported between two times. Power between two readings is on the line through
// them, where they are not further apart than five times the log's median distance (10 s where that
// is less, at most 5 minutes). Of a time with such a gap, this is its longest part without one.
struct WallEnergy {
  RealTime begin{};  // of the part that the log covers
  RealTime end{};
  Energy energy;
  std::size_t readings = 0;  // within the part
  Duration longest_pause{};  // between readings in or around the part
};

// Errors: unavailable where the log covers nothing of the time.
Result<WallEnergy> wall_energy(const model::WallLog& log, RealTime begin, RealTime end);

using analysis::wall_slope;
using analysis::WallPiece;
using analysis::WallSlope;

struct WallComparison {
  std::string host;    // of a job; empty: of the run
  model::WallLog log;  // without its readings
  WallEnergy wall;
  Duration uncovered{};                          // of the run's time
  std::optional<model::Measurement> components;  // the total over the same time
  std::vector<std::string> domains;              // that it is of
  std::vector<std::string> missing;              // domains of the machine without an energy
  std::optional<WallSlope> slope;                // of a run with changes of power

  // The components' share of the wall's energy; above 1 where sensors contradict the meter.
  std::optional<double> explained() const;
};

// Compares the total over the part of the run that the log covers. Errors: as Run::profile's and
// wall_energy's; unavailable where the run has no wall clock; corrupt where the meter does not
// follow the sensors, whatever the length of the pieces and a shift of its clock by up to 20 s: it
// is another machine's, or its readings are stale.
Result<WallComparison> compare_wall(const analysis::Run& run, const analysis::Part& part,
                                    const model::WallLog& log);

// What the meters at the wall said that were read during the run (`--wall-meter`), in their order;
// those with two readings.
std::vector<model::WallLog> recorded_walls(const analysis::Run& run);

// With `given`, else with the first meter that was read during the run and is not refused; absent
// without one. Errors: as compare_wall's, of `given`.
Result<std::optional<WallComparison>> wall_of(const analysis::Run& run, const analysis::Part& part,
                                              const std::optional<model::WallLog>& given);

// Compares the total of a machine of a job. Errors: not_found for a machine that the job does not
// have; unavailable where the log does not cover its time.
Result<WallComparison> compare_wall(const analysis::Job& job, const std::string& host,
                                    const model::WallLog& log);

std::string wall_to_text(const WallComparison& wall, const TextOptions& text);

}  // namespace jouleprof::report
