// The rows of the regression that attributes energy to kernels: observed power, and the activity as
// the sensors respond to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/sensors/observed_sensor.h"

namespace jouleprof::analysis {

// The sensors' first-order time constant in seconds, with its standard error, and the offsets by
// which the times of ObservedPower are late (negative: early) beyond the assumed lag.
struct SensorTiming {
  double time_constant = 0;
  double counter_late = 0;
  double samples_late = 0;
  double time_constant_sigma = 0;
  // The counter adds up means over `counter_window`, so far apart; 0: it integrates. Its last one
  // ends `counter_phase` before an update.
  double counter_every = 0;
  double counter_window = 0;
  double counter_phase = 0;
};

// One equation: watts = idle + sum over columns of share x watts of that column.
struct PowerRow {
  double begin = 0;  // of the ObservedPower
  double end = 0;
  double watts = 0;
  bool counter = false;
  std::size_t first = 0;  // its terms go up to the next row's
  bool in_rerun = false;  // not of the program's own time
  double doubt = 0;       // watts by which its power may differ from that of the same kernels
};

struct PowerRows {
  struct Term {
    std::uint32_t column = 0;
    float share = 0;  // of the row's time; the lag may make it slightly negative
  };
  std::vector<PowerRow> rows;
  std::vector<Term> terms;  // each row's in order of their columns
  std::size_t columns = 0;

  std::span<const Term> of(std::size_t row) const {
    const std::size_t end = row + 1 < rows.size() ? rows[row + 1].first : terms.size();
    return {terms.data() + rows[row].first, end - rows[row].first};
  }
  std::span<Term> of_mutable(std::size_t row) {
    return {terms.data() + rows[row].first, of(row).size()};
  }
};

// How many different mixes of columns the rows see: those of one mix differ by at most a tenth in
// every share. What a model of the sensors gets wrong of one row, it gets wrong of all of its mix;
// a load in step with its samples shows them few, however long it runs. Absent: more than 64.
std::optional<std::size_t> mixes_of(const PowerRows& rows);

// One row for each of `observed`. `column_of` gives each kernel signature its column, 0 to
// columns - 2, and after the signatures it may give variants and overlapped times theirs
// (model::kNone: none). The last column is idle between launches, in bins in which something ran.
// Activity counts as uniform within a bin, or launches lie in one of the orders that are possible:
// one at a time, each signature's evenly apart (evenly spread, if many), from places that differ
// from `order` to order (2 n and 2 n + 1 are mirrored). Rows come in order of the times at which
// the sensors saw the last of them. Time: linear in bins' entries plus rows x columns.
PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const ObservedPower> observed,
                     const SensorTiming& timing, std::optional<std::size_t> order = std::nullopt);

}  // namespace jouleprof::analysis
