// The statistics of comparisons: differences of logarithms, Student's t, Holm's correction.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace jouleprof::analysis {

// The mean difference of two sides' logarithms: the log of the ratio after / before.
struct Estimate {
  double mean = 0;
  std::optional<double> half;  // of the 95 % interval; absent: the spread between runs is not known
  // The standard error by the spread of runs: Student's t with so many degrees of freedom.
  double spread = 0;
  double degrees = std::numeric_limits<double>::infinity();
  // Standard errors that are known, so that they are normal: the sensors' noise, which the spread
  // contains where there are enough runs to show it, and their calibration, which it does not.
  double noise = 0;
  double calibration = 0;

  double low() const { return mean - half.value_or(std::numeric_limits<double>::infinity()); }
  double high() const { return mean + half.value_or(std::numeric_limits<double>::infinity()); }
};

// Estimates the mean difference of pairs of runs. Half the interval is absent for fewer than two.
Estimate estimate_of_pairs(std::span<const double> differences);

// Estimates the difference of independent units of both sides, such as blocks of runs, with the
// wider interval of Welch's t test and of the one with pooled variance. Two units may agree by
// chance, and Welch's test then leaves out the spread of their side. Where one side has a single
// unit, the spread of the other stands for both, and `fewer_runs` is the variance that it has above
// theirs, as the mean of fewer runs. Half the interval is absent where both have one. Neither may
// be empty.
Estimate estimate_of_units(std::span<const double> before, std::span<const double> after,
                           double fewer_runs = 0);

// Estimates the difference of units whose relative standard deviation is known from elsewhere.
Estimate estimate_with_spread(std::span<const double> before, std::span<const double> after,
                              double spread);

// Adds the sensors' part to the interval: halves of 95 % intervals.
void add_sensors(Estimate& estimate, double noise, double calibration);

// How many units each side needs until the interval of this same mean excludes zero, or lies within
// log ratios of `same_within`; at least one more than `units`. Absent: not even a thousand.
std::optional<std::size_t> units_to_decide(const Estimate& estimate, std::size_t units, bool paired,
                                           double same_within);

// The p value of "no difference", two-sided: of the widest interval that excludes it. 1 where there
// is no interval.
double p_value(const Estimate& estimate);

// Holm's step-down adjustment of p values, in their order (Holm 1979).
std::vector<double> holm_adjusted(std::vector<double> p);

}  // namespace jouleprof::analysis
