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

namespace {

using analysis::Difference;

// A cell: text that ends no cell, line or code, and starts no markup.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '|' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']' || c == '\\') {
      out += '\\';
    }
    if (c == '<') {
      out += "&lt;";
    } else if (c == '@') {
      out += "&#64;";  // no person is notified
    } else {
      out += c;
    }
  }
  return out;
}

std::string row(const Difference& d, const std::string& metric) {
  const bool clear =
      d.verdict == analysis::Verdict::kHigher || d.verdict == analysis::Verdict::kLower;
  const std::string name = d.detail.empty() ? d.name : d.name + " " + d.detail;
  return fmt::format("| {} | {} | {} | {} | {} | {}{}{} |\n", cell(name),
                     figure_text(metric, d.before), figure_text(metric, d.after),
                     change_text(d.ratio()), interval_text(d), clear ? "**" : "",
                     to_string(d.verdict), clear ? "**" : "");
}

std::string head(std::string_view first) {
  return fmt::format(
      "| {} | before | after | change | 95 % | verdict |\n"
      "|---|--:|--:|--:|--:|---|\n",
      first);
}

std::string sides(const std::string& title, const std::vector<std::string>& runs) {
  if (!title.empty()) return cell(title);
  return cell(runs.size() == 1 ? runs.front() : fmt::format("{} runs", runs.size()));
}

}  // namespace

std::string comparison_to_markdown(const ComparisonReport& report) {
  const auto& c = report.comparison;
  std::string text = fmt::format("### Energy: {}\n\n{}.\n\n", to_string(c.energy.verdict),
                                 cell(verdict_sentence(report)));
  for (const auto& judged : report.gates) {
    text += fmt::format("- gate {}\n", cell(gate_text(report, judged)));
  }
  if (!report.gates.empty()) text += '\n';
  text += head("total");
  text += row(c.energy, "energy") + row(c.time, "time") + row(c.power, "power");
  if (!c.rows.empty()) {
    text += '\n' + head(to_string(report.by));
    std::size_t left = report.most_rows;
    for (const auto& d : c.rows) {
      if (report.most_rows > 0 && left-- == 0) break;
      text += row(d, "energy");
    }
    if (report.most_rows > 0 && c.rows.size() > report.most_rows) {
      text += fmt::format("\n{} more rows are not shown.\n", c.rows.size() - report.most_rows);
    }
  }
  if (!c.unmatched.empty()) {
    text += fmt::format("\n{} rows are only on one side.\n", c.unmatched.size());
  }
  if (!c.conditions.empty()) text += '\n';
  for (const auto& condition : c.conditions) {
    text += fmt::format("- {}**{}**: {}\n", condition.blocks ? "refused, " : "",
                        cell(condition.code), cell(condition.text));
  }
  text += fmt::format(
      "\n<sub>before: {}; after: {}; {} {} before, {} after; total of {}; "
      "jouleprof</sub>\n",
      sides(report.before, c.before), sides(report.after, c.after), c.units_before,
      report.options.paired ? "pairs" : "blocks", c.units_after,
      cell(fmt::format("{}", fmt::join(c.domains, " + "))));
  return text;
}

}  // namespace jouleprof::report
