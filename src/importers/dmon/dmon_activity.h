// Finds the work and the idle interval before it in a dmon log, which marks neither.
//
// A tick is one round of dmon over all GPUs.
// Active: some GPU has sm >= 30 %. The work is everything from the first active tick to the last
// one, less one tick on each side, since those two are only partly busy. Idle: the leading ticks in
// which every GPU has sm = 0 and its SM clock (pclk) at the lowest value that it has anywhere in
// the log. When the log has an active tick, that lowest value must be at most half of the GPU's
// highest one: else the clocks never fell, and the power is not that of an idle GPU. A GPU whose sm
// or pclk is not given (MIG, or other columns were logged) is never idle.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "importers/dmon/dmon_log.h"

namespace jouleprof::importers {

inline constexpr double kActiveSmPercent = 30;

struct TickRange {
  std::size_t first = 0;
  std::size_t last = 0;  // inclusive

  bool operator==(const TickRange&) const = default;
};

struct DmonActivity {
  std::size_t idle_ticks = 0;  // how many the log begins with
  // Absent without an active tick. Not trimmed when fewer than three ticks lie within.
  std::optional<TickRange> work;
};

// `ticks` holds the index of each tick's first row in `rows`.
DmonActivity find_activity(std::span<const DmonRow> rows, std::span<const std::size_t> ticks);

}  // namespace jouleprof::importers
