// Whether a meter at the supply is this machine's.
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

// How the meter's power follows that of the sensors.
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
