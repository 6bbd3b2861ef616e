#include <fmt/format.h>

#include "report/cells.h"
#include "report/results/comparison.h"

namespace jouleprof::report {
namespace {

// As a workflow command takes its message.
std::string message(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '%') {
      out += "%25";
    } else {
      out += c;
    }
  }
  return out;
}

std::string command(std::string_view level, std::string_view title, std::string_view text) {
  return fmt::format("::{} title={}::{}\n", level, title, message(text));
}

}  // namespace

std::string comparison_to_github(const ComparisonReport& report) {
  using analysis::GateOutcome;
  std::string text;
  for (const auto& judged : report.gates) {
    const char* level = judged.outcome == GateOutcome::kFailed         ? "error"
                        : judged.outcome == GateOutcome::kInconclusive ? "warning"
                                                                       : "notice";
    text += command(level, "jouleprof gate", gate_text(report, judged));
  }
  for (const auto& condition : report.comparison.conditions) {
    text += command(condition.blocks ? "error" : "warning", "jouleprof " + condition.code,
                    condition.text);
  }
  if (report.gates.empty()) {
    const auto& energy = report.comparison.energy;
    text += command("notice", "jouleprof energy",
                    fmt::format("{}: {}, 95 % {}", to_string(energy.verdict),
                                change_text(energy.ratio()), interval_text(energy)));
  }
  return text;
}

}  // namespace jouleprof::report
