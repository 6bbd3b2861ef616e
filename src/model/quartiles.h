// Quartiles of a list of values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// A quarter of the values is at most `lower`, half of them at most `median`, three quarters at most
// `upper`.
template <typename T>
struct Quartiles {
  T lower{};
  T median{};
  T upper{};

  bool operator==(const Quartiles&) const = default;
};

// Fewer values have no quartiles that say more than the values.
inline constexpr std::size_t kFewestForQuartiles = 4;

// By linear interpolation between the sorted values, as numpy.percentile (Hyndman and Fan 1996,
// definition 7). Absent for fewer than kFewestForQuartiles values.
inline std::optional<Quartiles<double>> quartiles_of(std::vector<double> values) {
  if (values.size() < kFewestForQuartiles) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double share = place - std::floor(place);
    return values[below] + share * (values[above] - values[below]);
  };
  return Quartiles<double>{at(0.25), at(0.5), at(0.75)};
}

// `values`: joules.
inline std::optional<Quartiles<Energy>> energy_quartiles_of(std::vector<double> values) {
  const auto q = quartiles_of(std::move(values));
  if (!q) return std::nullopt;
  return Quartiles<Energy>{Energy::joules(q->lower), Energy::joules(q->median),
                           Energy::joules(q->upper)};
}

// `values`: seconds.
inline std::optional<Quartiles<Duration>> time_quartiles_of(std::vector<double> values) {
  const auto q = quartiles_of(std::move(values));
  if (!q) return std::nullopt;
  return Quartiles<Duration>{duration_of(q->lower), duration_of(q->median), duration_of(q->upper)};
}

}  // namespace jouleprof::model
