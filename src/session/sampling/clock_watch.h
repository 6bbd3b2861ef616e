// Notices that the wall clock was set or that the machine slept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace jouleprof::session {

class ClockWatch {
 public:
  struct Observed {
    std::vector<ClockPoint> points;  // to record
    std::optional<std::string> warning;
  };

  explicit ClockWatch(Duration period = std::chrono::seconds{10}) : period_(period) {}

  // To be called often, with the clocks now. A point is worth recording every period, and on both
  // sides of a step or a sleep.
  Observed look(const ClockPoint& now);

 private:
  Duration period_;
  std::optional<ClockPoint> last_;
  std::optional<ClockPoint> recorded_;
};

}  // namespace jouleprof::session
