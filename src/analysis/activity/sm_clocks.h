// The SM clocks of a GPU while it ran kernels, and their effect on its power.
#pragma once

#include <optional>
#include <string>

#include "analysis/activity/activity_table.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// From readings of the SM clock while kernels ran. A kernel's power grows with the clock to the
// power of ErrorModel's exponent. `held`: the share of the time in which clocks were reduced, used
// where clocks are unknown.
class SmClocks {
 public:
  SmClocks(const model::Recording& recording, const model::Domain& domain,
           const ActivityTable& table, double held);

  // The relative standard deviation of all kernels' power due to changing clocks while the program
  // ran. With fewer than five readings, a guess from the share of time with reduced clocks.
  double power_variation() const;

  // The mean SM clock while the program ran kernels; absent without readings.
  std::optional<double> program_hertz() const;

  // Whether isolated re-runs, all together, ran at other clocks than the program. Where clocks are
  // unknown, that is assumed if the program's were reduced for long.
  bool replays_differ() const;
  // The same as a reason not to use them.
  std::string why_replays_differ() const;

 private:
  struct Mean {
    double sum = 0;
    double squares = 0;
    int count = 0;

    double value() const { return sum / count; }
    double spread() const;  // relative standard deviation
  };

  double held_;
  Mean program_;
  Mean replay_;
};

}  // namespace jouleprof::analysis
