// Two sets of runs compared: differences with intervals and verdicts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/figures.h"
#include "analysis/compare/sides.h"
#include "analysis/compare/statistics.h"
#include "base/result.h"

namespace jouleprof::analysis {

std::optional<CompareBy> parse_compare_by(std::string_view word);  // total, window, phase, ...
std::string_view to_string(CompareBy by);

struct CompareOptions {
  bool paired = false;             // the n-th run before and the n-th after were made together
  std::optional<double> spread{};  // relative standard deviation between runs, known from elsewhere
  double same_within = 0.01;       // a difference within this ratio is no difference
  std::vector<std::string> accepted{};  // codes of conditions that do not prevent a verdict
};

enum class Verdict { kLower, kHigher, kSame, kInconclusive };
std::string_view to_string(Verdict verdict);

struct Difference {
  std::string name;
  std::string detail;
  std::optional<double> before;  // geometric means, in the figure's unit
  std::optional<double> after;
  std::optional<Estimate> log_ratio;  // of after / before; absent where either is, or is_blocked()
  double p = 1;                       // of "no difference"; of rows, adjusted by Holm
  Verdict verdict = Verdict::kInconclusive;
  // Why: "interval_below_zero", "interval_above_zero", "within_threshold", "interval_too_wide",
  // "one_of_many" (of so many rows, some intervals exclude zero by chance),
  // "spread_unknown", "estimated", "absent", "not_positive", "undivided",
  // "rest_unknown", "not_resolvable", or a condition's.
  std::string reason;
  std::optional<double> sensor_noise;  // half of a 95 % interval, relative; in the interval
  // "not_positive", "undivided": the means of the sides differ by so many joules at most.
  std::optional<double> at_most{};

  // The difference and its interval as ratios: -0.1 is 10 % less.
  std::optional<double> ratio() const;
  std::optional<double> low() const;
  std::optional<double> high() const;
};

struct Comparison {
  std::vector<std::string> before;  // names of the runs
  std::vector<std::string> after;
  std::size_t units_before = 0;  // blocks, or pairs
  std::size_t units_after = 0;
  std::vector<std::string> domains;        // in the total
  std::vector<std::string> domains_after;  // in that of the runs after, where it is of others
  std::vector<std::string> excluded;       // outside of it
  bool is_command = false;  // energies of runs are the command's; else of whole devices
  Difference energy;        // each with a test of its own
  Difference time;
  Difference power;
  std::vector<Difference> rows;  // energies, one family of tests; the greatest change first
  std::vector<UnmatchedRow> unmatched;
  std::vector<Condition> conditions;

  bool is_blocked() const;
};

// Without `paired`: runs in the order of time, of which adjacent ones of one side are a block, the
// unit of the test. Other runs in between, another boot, or an hour without runs end a block.
// Errors: invalid_argument where a side is empty, or pairs are incomplete.
Result<Comparison> compare(const std::vector<RunFigures>& before,
                           const std::vector<RunFigures>& after, const CompareOptions& options);

// A limit on a change, such as "energy>+3%", and whether a comparison exceeds it.
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
