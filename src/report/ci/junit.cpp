#include <fmt/format.h>

#include "report/markup_text.h"
#include "report/results/comparison.h"

namespace jouleprof::report {
namespace {

struct Case {
  std::string name;
  std::string text;
  analysis::GateOutcome outcome;
};

}  // namespace

std::string comparison_to_junit(const ComparisonReport& report) {
  using analysis::GateOutcome;
  std::vector<Case> cases;
  for (const auto& judged : report.gates) {
    cases.push_back({judged.gate.text, gate_text(report, judged), judged.outcome});
  }
  if (cases.empty()) {
    const auto& energy = report.comparison.energy;
    cases.push_back({"energy",
                     fmt::format("{}: {}, 95 % {}", to_string(energy.verdict),
                                 change_text(energy.ratio()), interval_text(energy)),
                     GateOutcome::kPassed});
  }
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::string body;
  for (const auto& each : cases) {
    body += fmt::format("    <testcase classname=\"jouleprof.compare\" name=\"{}\">\n",
                        markup_text(each.name));
    if (each.outcome == GateOutcome::kFailed) {
      ++failures;
      body += fmt::format("      <failure message=\"{}\"/>\n", markup_text(each.text));
    } else if (each.outcome == GateOutcome::kInconclusive) {
      ++errors;
      body += fmt::format("      <error message=\"{}\"/>\n", markup_text(each.text));
    }
    body +=
        fmt::format("      <system-out>{}</system-out>\n    </testcase>\n", markup_text(each.text));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"jouleprof compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}"
      "  </testsuite>\n</testsuites>\n",
      cases.size(), failures, errors, body);
}

}  // namespace jouleprof::report
