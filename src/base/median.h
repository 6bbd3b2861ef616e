// The middle of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace jouleprof {

// At least one value. Of an even number, the upper one of the two in the middle.
template <class T>
T upper_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// At least one value. Of an even number, the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// 0 of no values.
inline double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max(values.size(), std::size_t{1}));
}

}  // namespace jouleprof
