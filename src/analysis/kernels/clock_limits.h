// When power or heat held a device's clocks below what the work asked for.
#pragma once

#include <optional>
#include <vector>

#include "model/recording.h"

namespace jouleprof::analysis {

// As the readings of the clock-event reasons tell; each holds until the next.
class ClockLimits {
 public:
  ClockLimits(const model::Recording& recording, const model::Domain& domain);

  // The part of the known time within [begin, end] in which they were held down; absent when
  // nothing is known of it.
  std::optional<double> held_share(HostTime begin, HostTime end) const;

 private:
  struct Stretch {
    HostTime begin{};
    HostTime end{};
    bool held = false;
  };
  std::vector<Stretch> stretches_;  // in order
};

}  // namespace jouleprof::analysis
