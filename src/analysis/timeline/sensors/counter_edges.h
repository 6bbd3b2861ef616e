// When a counter stood at what it said.
//
// A counter that is renewed every `refresh` says at any read what it stood at at its last update
// edge. Edges lie on a lattice of that period; an update becomes visible 0 to about 28 ms after its
// edge, and a read takes milliseconds itself. So the lattice's phase is fitted by likelihood, from
//  - the spans in which updates were first seen (a read with the old value, then one with the new),
//  - how well the increments between edges agree with the power samples.
// Both terms are bounded for a single read, so a jump, a lost update or a late read moves nothing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/timeline/sensors/counter.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "analysis/timeline/sensors/power_shape.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// The counter stood at `joules` (since its first reading) at `at`, give or take `sigma` seconds.
struct Anchor {
  double at = 0;
  double joules = 0;
  double sigma = 0;
  // On the lattice all anchors are early or late together, so that `sigma` matters only where power
  // changes. Off it, each is wrong by itself.
  bool on_lattice = false;
  std::uint32_t segment = 0;
};

// The lattice, as it was at one time; the host's and the device's clock drift apart by some ppm.
struct EdgePhase {
  double period = 0;
  double edge = 0;   // the time of one edge
  double sigma = 0;  // of it
};

struct PlacedCounter {
  std::vector<Anchor> anchors;
  std::optional<EdgePhase> phase;  // absent where no lattice could be had
};

// Places points of one segment, at most some minutes of them. `shape` may be null or empty;
// `before` is the phase found for earlier points. Reads with an ambiguous edge are left out.
//
// Counters renewed faster than every 20 ms, or with an unknown refresh, are anchored at the middle
// of the read, with what refresh and read leave open as `sigma`.
PlacedCounter place_counter(std::span<const CounterPoint> points, const model::SensorTraits& traits,
                            const PowerShape* shape, const std::optional<EdgePhase>& before,
                            TimeBase time);

}  // namespace jouleprof::analysis
