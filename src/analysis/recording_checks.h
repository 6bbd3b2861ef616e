// Whether the data of a recording can be relied on: warnings for the readers of its profile, and
// whether a meter at the supply is this machine's.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The recorded warnings, and those about the data of [begin, end]: a recording that was cut off, a
// suspended machine, a wall clock that was set, a GPU at its power or temperature limits.
std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end);

// Sensors of a domain's timeline whose reads failed for a second or more of [begin, end]: since
// when, why, and what is used there.
std::vector<std::string> failed_read_warnings(const model::Recording& recording,
                                              const std::string& device,
                                              const TimelineSensors& sensors, RecordedSpan span,
                                              HostTime work_begin);

// The time and energy of isolated re-runs within [begin, end], the time of the figures, and from
// there to the work's end; empty without any.
std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end);

// How the power of a meter at the supply follows that of the sensors.
struct WallSlope {
  double ratio = 0;  // watts at the meter for one more watt at the sensors
  double error = 0;  // half of its 95 % interval
  Power low;         // of the sensors' means over the pieces of time that were compared
  Power high;
  std::size_t pieces = 0;

  // A supply never takes less than it gives: sensors off by a half are the most that is allowed.
  bool follows() const { return ratio + error >= 0.5; }
};

// Mean powers of one piece of time, in watts.
struct WallPiece {
  double sensors = 0;
  double wall = 0;
};

// Absent for fewer than 8 pieces, or where the sensors' power hardly changes: by less than 5 W or
// 5 % (standard deviation).
std::optional<WallSlope> wall_slope(const std::vector<WallPiece>& pieces);

// The clearest of all lengths of the pieces of `whole` and shifts of the meter's clock.
// `longest_pause`: between two readings of the meter. `pieces_of`: the pieces of one length, the
// meter's `shift` later.
Result<std::optional<WallSlope>> clearest_slope(
    Duration whole, Duration longest_pause,
    const std::function<Result<std::vector<WallPiece>>(Duration length, Duration shift)>&
        pieces_of);

// "does not follow this machine: ...", of a slope that does not.
std::string does_not_follow(const WallSlope& slope);

// Why the power of a recorded wall meter is not this machine's in [begin, end] of the work: it
// shows less than the sensors of the machine's parts, or does not follow them. Empty: nothing
// speaks against it, or `domain` (an index) is no wall meter's.
std::string why_no_wall(const model::Recording& recording, Timelines& timelines, std::size_t domain,
                        RecordedSpan part, RecordedSpan work);

// How long a recorded wall meter showed less than the machine's parts drew at least, at a stretch,
// and by how much a meter that is so late may be wrong over any part of the work. Absent below 3 s,
// and for a meter whose mean is known to be longer.
struct LateWall {
  Duration late{};
  Energy error;
};
std::optional<LateWall> late_wall(const model::Recording& recording, Timelines& timelines,
                                  std::size_t domain, RecordedSpan work);

}  // namespace jouleprof::analysis
