// The statistics of comparisons: differences of logarithms, Student's t, Holm's correction.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace jouleprof::analysis {

// The mean difference of two sides' logarithms: the log of the ratio after / before.
struct Estimate {
  double mean = 0;
  std::optional<double> half;  // of the 95 % interval; absent: the spread between runs is not known
  double degrees = std::numeric_limits<double>::infinity();  // of freedom of Student's t

  double low() const { return mean - half.value_or(std::numeric_limits<double>::infinity()); }
  double high() const { return mean + half.value_or(std::numeric_limits<double>::infinity()); }
};

// Of pairs of runs: one difference each. Half the interval is absent for fewer than two.
Estimate estimate_of_pairs(std::span<const double> differences);

// Of independent units of both sides, such as blocks of runs. Welch's t test; where one side has a
// single unit, the spread of the other stands for both (pooled variance). Half the interval is
// absent where both have one. Neither may be empty.
Estimate estimate_of_units(std::span<const double> before, std::span<const double> after);

// Of units whose relative standard deviation is known from elsewhere.
Estimate estimate_with_spread(std::span<const double> before, std::span<const double> after,
                              double spread);

// The p value of "no difference", two-sided, from the interval. 1 where there is none.
double p_value(const Estimate& estimate);

// Holm's step-down adjustment of p values, in their order (Holm 1979).
std::vector<double> holm_adjusted(std::vector<double> p);

}  // namespace jouleprof::analysis
