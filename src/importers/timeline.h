// Maps the stamps of another tool to host time, without the pauses in which it did not record.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::importers {

struct Stamp {
  Duration at{};                // on the other tool's clock
  bool starts_segment = false;  // the tool was not recording just before
};

// Stamps that follow each other without a pause.
struct Segment {
  HostTime begin{};
  HostTime end{};
  Duration stamp_begin{};
  Duration stamp_end{};
};

struct Layout {
  std::vector<HostTime> times;    // of each stamp, strictly increasing, the first is zero
  std::vector<Segment> segments;  // in order
  Duration cut{};                 // the pauses together, where the clock did not go back
  std::size_t backward_steps = 0;
};

// `stamps` in the order in which they were written. A pause is cut out where a stamp starts a
// segment, where the clock went back, and where the distance to the stamp before is more than
// ten times the usual (median) one and longer than 5 s. A pause keeps the length `seam`: the
// averaging time of a reading, so that the first reading after a pause does not cover the time
// before it. Readings of an instant need 1 ns only.
Layout lay_out(std::span<const Stamp> stamps, Duration seam = Duration{1});

// The median distance of neighbouring stamps within segments; zero when there are none.
Duration usual_distance(std::span<const Stamp> stamps);

}  // namespace jouleprof::importers
