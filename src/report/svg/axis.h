// A scale of a figure, and its round numbers.
#pragma once

#include <vector>

namespace jouleprof::report {

// Maps values onto places of a drawing; `to` may be less than `from`, as upwards in an SVG.
struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;

  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// From about the least to about the greatest, with a margin; of one value, a range around it.
Axis padded_axis(double low, double high, double from, double to);

// At most `count` + 1 multiples of 1, 2 or 5 times a power of ten from `low` to `high`.
std::vector<double> ticks(double low, double high, int count = 4);

}  // namespace jouleprof::report
