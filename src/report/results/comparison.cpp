#include "report/results/comparison.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReasons{{
    {"interval_below_zero", "the 95 % interval lies below zero"},
    {"interval_above_zero", "the 95 % interval lies above zero"},
    {"within_threshold", "the 95 % interval lies within the threshold of no difference"},
    {"one_of_many",
     "the 95 % interval excludes zero, but of so many rows some do by chance: Holm's test of all "
     "of them does not"},
    {"interval_too_wide", "the 95 % interval holds zero and exceeds the threshold"},
    {"spread_unknown",
     "the spread between runs is not known: each side is one block of runs. Use compare --pairs, "
     "record both sides in turn, or give a known spread with --spread"},
    {"estimated", "the energy is an estimate, whose error does not cancel"},
    {"absent", "the energy is not known in each run"},
    {"not_positive", "the energy is not positive in each run"},
    {"rest_unknown", "the energy at rest is part of some runs only, and not known in each of them"},
    {"not_resolvable", "the energy is not resolvable in each run"},
}};

constexpr double kJoulesPerKilowattHour = 3.6e6;

double rounded(double percent) { return std::abs(percent) < 0.005 ? 0.0 : percent; }

std::string number(double percent) {
  const double value = rounded(percent);
  return fmt::format("{:+.{}f}", value, std::abs(value) < 9.95 ? 2 : 1);
}

}  // namespace

SideCost cost_of(const CostFactors& factors, const std::optional<double>& joules) {
  SideCost cost;
  if (!joules) return cost;
  const double site = *joules / kJoulesPerKilowattHour * factors.pue.value_or(1);
  if (factors.price) cost.money = site * factors.price->per_kilowatt_hour;
  if (factors.grams) cost.carbon_grams = site * *factors.grams;
  return cost;
}

std::string reason_text(const std::string& code) {
  for (const auto& [known, text] : kReasons) {
    if (known == code) return std::string(text);
  }
  return code;  // of a condition, which has a text of its own
}

std::string change_text(const std::optional<double>& ratio) {
  return ratio ? number(100 * *ratio) + " %" : "-";
}

std::string interval_text(const analysis::Difference& d) {
  if (!d.low() || !d.high()) return "unknown";
  return fmt::format("{} to {} %", number(100 * *d.low()), number(100 * *d.high()));
}

std::string gate_text(const ComparisonReport& report, const JudgedGate& judged) {
  const auto& d = analysis::difference_of(report.comparison, judged.gate.metric);
  std::string text = fmt::format("{}: {}", judged.gate.text, to_string(judged.outcome));
  if (report.comparison.is_blocked()) return text + "; a condition prevents a verdict";
  text += fmt::format("; the change is {}, 95 % {}", change_text(d.ratio()), interval_text(d));
  if (!report.self_test) return text;
  return text + fmt::format(
                    ". Self-test: {} added twice to the figure after, so that a gate that "
                    "resolves its threshold fails",
                    change_text(judged.gate.threshold));
}

std::string figure_text(const std::string& metric, const std::optional<double>& value) {
  if (!value) return "-";
  if (metric == "time") return duration_text(duration_of(*value));
  if (metric == "power") return number_text(*value) + " W";
  return energy_text(Energy::joules(*value));
}

}  // namespace jouleprof::report
