// The SM clocks of a GPU while it ran kernels, and their effect on its power.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Logarithm of the ratio of two SM clocks: beyond it nothing that was found at one is used at the
// other.
inline constexpr double kFarClock = 0.25;
// A ratio of times of a kernel without what the ratio of clocks alone explains: between nothing, of
// a kernel that waits for memory, and all of it.
double without_clock(double times, double clocks);

// From readings of the SM clock while kernels ran. A kernel's power grows with the clock to the
// power of ErrorModel's exponent. `held`: the share of the time in which clocks were reduced, used
// where clocks are unknown.
class SmClocks {
 public:
  SmClocks(const model::Recording& recording, const model::Domain& domain,
           const ActivityTable& table, double held);

  // Relative standard deviations of all kernels' power due to changing clocks while the program
  // ran, beyond power_ratio().
  struct Variation {
    double random = 0;      // from reading to reading
    double systematic = 0;  // may be alike in all of the time of a kernel
    double all() const;
  };
  // With fewer than five readings, a guess from the share of time with reduced clocks.
  Variation power_variation() const;
  // Mean power of a kernel over an interval of the program, in the table's seconds, relative to its
  // power at program_hertz(). 1 where the clock was not read often enough.
  double power_ratio(double begin, double end) const;

  // By how much, relative and at 95 %, the power of a kernel signature may differ from that at
  // program_hertz(), because the clock was another while it ran. 0 where the clock was not read
  // often enough: power_variation() holds that.
  double doubt_of(std::uint32_t kernel_class) const;

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

  double power_ratio(double hertz) const;
  double step() const;          // the median of the program's readings
  double random_hertz() const;  // of one reading, where it changes from one to the next

  double held_;
  Mean program_;
  Mean replay_;
  struct Reading {
    double at;
    double hertz;
    std::vector<ActivityTable::Entry> ran;  // then
  };
  std::vector<Reading> readings_;  // of the program, in order; empty: too few for power_ratio()
};

}  // namespace jouleprof::analysis
