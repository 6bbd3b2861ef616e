// What the sensors said about power, beside what ran as those sensors saw it: the rows of the
// regression that attributes energy to kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/seen_power.h"

namespace jouleprof::analysis {

// How the sensors look at power: through a first-order lag of `rise` seconds; and by how much the
// times of SeenPower are late (negative: early) beyond what was assumed.
struct SensorTiming {
  double rise = 0;
  double counter_late = 0;
  double samples_late = 0;
  double rise_sigma = 0;
};

// One equation: watts = idle + sum over columns of share x watts of that column.
struct PowerRow {
  double begin = 0;  // of the SeenPower
  double end = 0;
  double watts = 0;
  bool counter = false;
  std::size_t first = 0;  // its terms go up to the next row's
};

struct PowerRows {
  struct Term {
    std::uint32_t column = 0;
    float share = 0;  // of the row's time; after a rise it may be slightly below zero
  };
  std::vector<PowerRow> rows;
  std::vector<Term> terms;
  std::size_t columns = 0;

  std::span<const Term> of(std::size_t row) const {
    const std::size_t end = row + 1 < rows.size() ? rows[row + 1].first : terms.size();
    return {terms.data() + rows[row].first, end - rows[row].first};
  }
};

// The regressors at the times of `seen`. `column_of` gives each class its column, 0 to columns - 2,
// and after the classes it may give variants theirs (model::kNone: none); the last column is the
// time between launches, in bins in which something ran. A class's time counts as spread evenly
// over a bin. Rows come in order of their ends. Linear in bins' entries plus rows x columns.
PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const SeenPower> seen,
                     const SensorTiming& timing);

}  // namespace jouleprof::analysis
