// The idle power of a GPU with a context, observed while it runs nothing.
#pragma once

#include <cstddef>
#include <optional>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/timeline/sensors/observed_power.h"

namespace jouleprof::analysis {

// Idle power drifts with temperature by several percent. So observations close to work, and after
// long work, have the greatest weights. `table` outlives it.
class QuietPower {
 public:
  // `memory`: seconds after work during which the sensors still respond to it.
  QuietPower(const ActivityTable& table, double memory) : table_(table), memory_(memory) {}

  // In order of their begins; those that overlap work or its response are ignored.
  void add(const ObservedPower& s);

  // Absent with fewer than five usable observations.
  std::optional<IdleHint> hint() const;

 private:
  const ActivityTable& table_;
  double memory_;
  std::size_t next_ = 0;    // bin
  double last_end_ = -1e9;  // of the bins before it
  double heat_ = 0;         // busy seconds before that, exponentially weighted
  int count_ = 0;
  int between_ = 0;  // of them, between work
  double weight_ = 0;
  double watts_ = 0;
  double squares_ = 0;
};

}  // namespace jouleprof::analysis
