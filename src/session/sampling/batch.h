// Things to record, in any amount.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/recording.h"

namespace jouleprof::session {

struct Batch {
  std::optional<model::RunInfo> run;
  std::vector<ClockPoint> clock_points;
  std::vector<model::Domain> domains;
  std::vector<model::Sensor> sensors;
  std::vector<model::Process> processes;
  std::vector<model::IdleSpan> idle_spans;
  std::vector<model::Warning> warnings;
  std::optional<model::Overhead> overhead;
  model::Readings readings;
  model::ProcessReadings process_readings;
  std::vector<model::Window> windows;
  struct TracePart {
    std::uint32_t trace = 0;
    model::Trace more;
  };
  std::vector<TracePart> traces;

  bool empty() const;
  void append(Batch&& later);

  // Readings, readings of processes, and windows: what grows with time.
  std::size_t series_bytes() const;
  void drop_series();
};

}  // namespace jouleprof::session
