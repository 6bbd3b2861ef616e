// The SM clocks that a GPU worked at, and what follows for its power.
#pragma once

#include <optional>
#include <string>

#include "analysis/activity/activity_table.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// From readings of the SM clock at which something ran. A kernel's power goes with more than the
// square of it. `held`: the part of the time in which clocks were held down, for where they are not
// known.
class SmClocks {
 public:
  SmClocks(const model::Recording& recording, const model::Domain& domain,
           const ActivityTable& table, double held);

  // How much the power of all kernels swayed with the clocks while the program ran: one sigma, of
  // it. Where there are fewer than five readings, guessed from how long clocks were held down.
  double power_sway() const;

  // Why layers that were run alone tell nothing of the program, if so: other clocks. Where either's
  // are not known, a program whose clocks were held down for long is taken to have had others.
  std::optional<std::string> why_replays_differ() const;

 private:
  struct Mean {
    double sum = 0;
    double squares = 0;
    int count = 0;

    double value() const { return sum / count; }
    double spread() const;  // one sigma, of the value
  };

  double held_;
  Mean program_;
  Mean replay_;
};

}  // namespace jouleprof::analysis
