// Finds the work and the idle interval before it in a dmon log, which marks neither.
//
// A look is one round of dmon over all GPUs.
// Active: some GPU has sm >= 30 %. The work is everything from the first active look to the last
// one, less one look on each side, since those two are only partly busy. Idle: the leading looks in
// which every GPU has sm = 0 and its SM clock (pclk) at the lowest value that it has anywhere in
// the log. When the log has an active look, that lowest value must be at most half of the GPU's
// highest one: else the clocks never fell, and the power is not that of an idle GPU. A GPU whose sm
// or pclk is not given (MIG, or other columns were logged) is never idle.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace jouleprof::importers {

inline constexpr double kActiveSmRatio = 0.3;

struct GpuLook {
  std::size_t gpu = 0;
  std::optional<double> sm;     // of 1
  std::optional<double> clock;  // of the SMs, in any one unit
};
using Look = std::vector<GpuLook>;

struct LookRange {
  std::size_t first = 0;
  std::size_t last = 0;  // inclusive

  bool operator==(const LookRange&) const = default;
};

struct DmonActivity {
  std::size_t idle_looks = 0;  // how many the log begins with
  // Absent without an active look. Not trimmed when fewer than three looks lie within.
  std::optional<LookRange> work;
};

DmonActivity find_activity(const std::vector<Look>& looks);

}  // namespace jouleprof::importers
