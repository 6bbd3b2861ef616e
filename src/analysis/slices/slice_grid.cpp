#include "analysis/slices/slice_grid.h"

#include <algorithm>
#include <chrono>

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShortest = 1s;
constexpr std::size_t kFewest = 12;  // slices of a long run, however many rows there are
constexpr std::size_t kMostSlices = 600;

}  // namespace

Duration round_step(Duration least) {
  for (const Duration unit : {Duration{1s}, Duration{10s}, Duration{60s}, Duration{600s}}) {
    for (const int factor : {1, 2, 5}) {
      if (factor * unit >= least) return factor * unit;
    }
  }
  return (least / Duration{1h} + 1) * Duration{1h};
}

Duration step_of(Duration length, std::size_t most) {
  const auto slices = static_cast<std::int64_t>(std::clamp(most, kFewest, kMostSlices));
  return round_step(std::max(length / slices, kShortest));
}

HostTime edge_before(HostTime t, HostTime origin, Duration step) {
  const Duration lead = t - origin;
  std::int64_t steps = lead / step;
  if (steps * step > lead) --steps;
  return origin + steps * step;
}

}  // namespace jouleprof::analysis
