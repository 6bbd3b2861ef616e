// The power of a GPU that has a context but runs nothing, seen in the pauses of its work.
#pragma once

#include <cstddef>
#include <optional>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/timeline/seen_power.h"

namespace jouleprof::analysis {

// It drifts with temperature by several percent, so that what is seen near work, and after much of
// it, counts most. `table` outlives it.
class QuietPower {
 public:
  // `memory`: seconds for which the sensors still see what ran.
  QuietPower(const ActivityTable& table, double memory) : table_(table), memory_(memory) {}

  // In order of their begins; those that work was seen in are left out.
  void look(const SeenPower& s);

  // Absent when there was hardly any quiet.
  std::optional<IdleHint> hint() const;

 private:
  const ActivityTable& table_;
  double memory_;
  std::size_t next_ = 0;    // bin
  double last_end_ = -1e9;  // of the bins before it
  double heat_ = 0;         // busy seconds before that, fading
  int looks_ = 0;
  double weight_ = 0;
  double watts_ = 0;
  double squares_ = 0;
};

}  // namespace jouleprof::analysis
