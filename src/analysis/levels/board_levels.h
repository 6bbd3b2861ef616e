// The levels of one domain's power over a recording, and the energy of each over an interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/levels/rest_level.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// power = rest + held (while a context holds the board) + active.
struct BoardLevels {
  bool is_board = false;  // a GPU; other domains have no held level
  std::optional<model::PowerLevel> rest;
  std::optional<model::PowerLevel> held;  // rest included: the power of a board that is held
  std::string rest_reason;                // why a level is absent, or was not observed here
  std::string held_reason;
  std::vector<std::string> warnings;
  model::ScaleError scale;  // of the sensor that gives the amount of energy
  // When the board was held, in order; absent: unknown.
  std::optional<std::vector<RecordedSpan>> held_spans;
  Duration edge_error{};  // of the begin or end of a span: half of a 95 % interval
  // A process outside of the command's tree held the board, too.
  bool shared = false;
  bool may_be_shared = false;  // its lists of processes do not say

  // The part of [begin, end] in which the board was held; absent where that is unknown.
  std::optional<Duration> held_time(HostTime begin, HostTime end) const;
  // Splits `energy`, measured over [begin, end] or `length` of it (without isolated re-runs, during
  // which the board is held). Exact: rest + held + active == energy where all are present. Held and
  // active are absent where the held power or its times are unknown. Active alone is present where
  // rest is unknown and the board was held; while it was not, rest is from nothing to held.
  model::EnergyLevels split(const model::Measurement& energy, HostTime begin, HostTime end,
                            std::optional<Duration> length = std::nullopt) const;
};

BoardLevels board_levels(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin, HostTime work_end);

}  // namespace jouleprof::analysis
