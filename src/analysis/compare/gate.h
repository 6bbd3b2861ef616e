// A limit on a change, such as "energy>+3%", and whether a comparison exceeds it.
#pragma once

#include <string>
#include <string_view>

#include "analysis/compare/compare.h"

namespace jouleprof::analysis {

enum class CompareMetric { kEnergy, kTime, kPower };

struct Gate {
  CompareMetric metric = CompareMetric::kEnergy;
  double threshold = 0;  // ratio: 0.03 is 3 %
  std::string text;      // as it was given
};

// "METRIC>+P%" with the metric energy, time or power; the sign and blanks may be left out. Errors:
// invalid_argument.
Result<Gate> parse_gate(std::string_view text);

enum class GateOutcome {
  kPassed,        // the interval lies at or below the threshold
  kFailed,        // the interval lies above it
  kInconclusive,  // it holds the threshold, or there is no verdict
};
std::string_view to_string(GateOutcome outcome);

// With `self_test` the figure after is multiplied by (1 + threshold)^2 first: a gate that resolves
// its threshold fails then. Passing always needs an interval.
GateOutcome judge(const Gate& gate, const Comparison& comparison, bool self_test = false);

const Difference& difference_of(const Comparison& comparison, CompareMetric metric);

}  // namespace jouleprof::analysis
