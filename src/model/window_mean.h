// What one of several windows took on average.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "model/profile.h"

namespace jouleprof::model {

inline Energy mean_of(Energy sum, std::size_t count) {
  return Energy::microjoules(
      std::llround(static_cast<long double>(sum.microjoules()) / static_cast<long double>(count)));
}

// The interval is that of the mean, not of each window. `count` is at least 1.
inline Measurement mean_of(const Measurement& sum, std::size_t count) {
  Measurement mean = sum;
  mean.energy = mean_of(sum.energy, count);
  mean.error = mean_of(sum.error, count);
  mean.repeatability = mean_of(sum.repeatability, count);
  return mean;
}

// The sum of the energies of single windows; `e` has an energy.
inline const Measurement& singles_of(const WindowEnergy& e) {
  return e.singles ? *e.singles : *e.energy;
}

// Of one window on average; absent without any.
inline std::optional<Measurement> mean_of(const WindowEnergy& e) {
  if (!e.energy || e.count == 0) return std::nullopt;
  return mean_of(singles_of(e), e.count);
}

// Whether every window of the group that measures the device has an energy. Others need none: those
// of monitors of other devices. A sum that lacks windows is no sum of the group.
inline bool is_whole(const WindowGroup& group, const WindowEnergy& e) {
  return e.count > 0 && (e.count == group.count || e.reason.empty());
}

}  // namespace jouleprof::model
