// What one of several windows took on average.
#pragma once

#include <cmath>
#include <cstddef>

#include "model/profile.h"

namespace jouleprof::report {

inline Energy mean_of(Energy sum, std::size_t count) {
  return Energy::microjoules(
      std::llround(static_cast<long double>(sum.microjoules()) / static_cast<long double>(count)));
}

// The interval is that of the mean, not of each window. `count` is at least 1.
inline model::Measurement mean_of(const model::Measurement& sum, std::size_t count) {
  model::Measurement mean = sum;
  mean.energy = mean_of(sum.energy, count);
  mean.error = mean_of(sum.error, count);
  mean.repeatability = mean_of(sum.repeatability, count);
  return mean;
}

// Whether every window of the group that measures the device has an energy. Others need none: those
// of monitors of other devices. A sum that lacks windows is no sum of the group.
inline bool is_whole(const model::WindowGroup& group, const model::WindowEnergy& e) {
  return e.count > 0 && (e.count == group.count || e.reason.empty());
}

}  // namespace jouleprof::report
