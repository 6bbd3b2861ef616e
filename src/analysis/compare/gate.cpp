#include "analysis/compare/gate.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

tl::unexpected<Error> invalid(std::string_view text) {
  return fail(Errc::kInvalidArgument,
              fmt::format("--fail-if {}: give energy, time or power, '>' and a percentage above 0, "
                          "such as 'energy>+3%'",
                          text));
}

std::optional<CompareMetric> parse_metric(std::string_view word) {
  if (word == "energy") return CompareMetric::kEnergy;
  if (word == "time") return CompareMetric::kTime;
  if (word == "power") return CompareMetric::kPower;
  return std::nullopt;
}

}  // namespace

Result<Gate> parse_gate(std::string_view text) {
  const auto sign = text.find('>');
  if (sign == std::string_view::npos) return invalid(text);
  const auto metric = parse_metric(trim(text.substr(0, sign)));
  std::string_view amount = trim(text.substr(sign + 1));
  if (!metric || !amount.ends_with('%')) return invalid(text);
  amount.remove_suffix(1);
  if (amount.starts_with('+')) amount.remove_prefix(1);
  const auto percent = parse_number(trim(amount));
  if (!percent || *percent <= 0 || *percent > 1000) return invalid(text);
  return Gate{*metric, *percent / 100, std::string(text)};
}

std::string_view to_string(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::kPassed:
      return "passed";
    case GateOutcome::kFailed:
      return "failed";
    case GateOutcome::kInconclusive:
      return "inconclusive";
  }
  return "";
}

GateOutcome judge(const Gate& gate, const Comparison& comparison, bool self_test) {
  const Difference& difference = difference_of(comparison, gate.metric);
  if (!difference.log_ratio || !difference.log_ratio->half || comparison.is_blocked()) {
    return GateOutcome::kInconclusive;
  }
  const double threshold = std::log1p(gate.threshold);
  const double added = self_test ? 2 * threshold : 0;
  if (difference.log_ratio->low() + added > threshold) return GateOutcome::kFailed;
  if (difference.log_ratio->high() + added <= threshold) return GateOutcome::kPassed;
  return GateOutcome::kInconclusive;
}

const Difference& difference_of(const Comparison& comparison, CompareMetric metric) {
  switch (metric) {
    case CompareMetric::kTime:
      return comparison.time;
    case CompareMetric::kPower:
      return comparison.power;
    case CompareMetric::kEnergy:
      break;
  }
  return comparison.energy;
}

}  // namespace jouleprof::analysis
