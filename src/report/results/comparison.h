// A comparison of runs, as people and programs read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/compare.h"
#include "report/cells.h"
#include "report/costs/costs.h"

namespace jouleprof::report {

// The condition of a comparison of simulated devices, of which texts and pages say so first.
inline constexpr std::string_view kSimulatedCode = "simulated";
bool is_simulated(const analysis::Comparison& comparison);
// "gpu0 + package-0", or "gpu0 before, gpu1 after".
std::string domains_text(const analysis::Comparison& comparison);

struct JudgedGate {
  analysis::Gate gate;
  analysis::GateOutcome outcome = analysis::GateOutcome::kInconclusive;
};

// One run of a side, as a page draws it.
struct ComparedRun {
  std::string name;
  std::optional<double> joules;
  std::optional<double> seconds;
  std::vector<analysis::RunCurve> curves;
};

struct ComparisonReport {
  analysis::Comparison comparison;
  analysis::CompareBy by = analysis::CompareBy::kTotal;
  analysis::CompareOptions options;
  std::string per;  // the window that is the unit; empty: the run
  std::vector<JudgedGate> gates;
  bool self_test = false;  // the gates' thresholds were added to the figures after
  // What the headings call the sides: commands that were run, or a baseline's name. Empty: the
  // names of the files.
  std::string before;
  std::string after;
  std::vector<ComparedRun> before_runs;  // for a page; empty: not wanted
  std::vector<ComparedRun> after_runs;
  std::size_t most_rows = 20;  // of tables for people
  CostFactors costs;           // without a series
};

std::string comparison_to_text(const ComparisonReport& report, const TextOptions& text = {});

// The documented JSON object (docs/json.md).
std::string comparison_to_json(const ComparisonReport& report);

// Tables for the comment of a pull request.
std::string comparison_to_markdown(const ComparisonReport& report);

// One test case for each gate; without a gate one for the energy, which cannot fail.
std::string comparison_to_junit(const ComparisonReport& report);

// Workflow commands of GitHub Actions: "::error ..." for a gate that failed, "::warning ...".
std::string comparison_to_github(const ComparisonReport& report);

// The figures after, as github-action-benchmark reads them (customSmallerIsBetter).
std::string comparison_to_benchmark(const ComparisonReport& report);

// The answer: "'python new.py' uses 1.23 times less energy than 'python old.py' (95 %: 1.19 to
// 1.27)", or that the difference cannot be seen, why, and what would decide.
std::string verdict_sentence(const ComparisonReport& report);

// In words: "intervals of single runs are not known: ...".
std::string reason_text(const std::string& code);

// "-4.9 %"; "-" where it is absent.
std::string change_text(const std::optional<double>& ratio);

// "-5.3 to -4.4 %"; "unknown" where it is absent.
std::string interval_text(const analysis::Difference& difference);

// One sentence on a gate: its outcome and the interval it rests on.
std::string gate_text(const ComparisonReport& report, const JudgedGate& judged);

// A figure of energy, time or power in its unit.
std::string figure_text(const std::string& metric, const std::optional<double>& value);

}  // namespace jouleprof::report
