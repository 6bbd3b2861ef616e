#include <fmt/format.h>

#include <set>

#include "report/html/page.h"
#include "report/markup_text.h"
#include "report/quantity.h"
#include "report/results/result_redaction.h"

namespace jouleprof::report {
namespace {

using analysis::Difference;

std::string side(const std::string& title, const std::vector<std::string>& runs) {
  if (runs.size() == 1 && title.empty()) return runs.front();
  return fmt::format("{} ({} run{})", title.empty() ? runs.front() + " \u2026" : title, runs.size(),
                     runs.size() == 1 ? "" : "s");
}

std::string test_text(const ComparisonReport& report) {
  const auto& c = report.comparison;
  std::string text = report.options.paired
                         ? fmt::format("{} pairs of runs.", c.units_before)
                         : fmt::format("{} and {} blocks of runs.", c.units_before, c.units_after);
  text += fmt::format(" Total: {}", fmt::join(c.domains, " + "));
  if (!c.excluded.empty()) text += fmt::format("; without {}", fmt::join(c.excluded, ", "));
  if (!report.per.empty()) text += fmt::format("; of one window {}", report.per);
  return text + ".";
}

// What prevents a verdict, what was found odd, why a verdict is missing, and the gates.
std::string remarks(const ComparisonReport& report) {
  const auto& c = report.comparison;
  std::string html;
  for (const auto& condition : c.conditions) {
    html += element("p", condition.blocks ? "alert" : "coverage",
                    fmt::format("{}: {}", condition.blocks ? "REFUSED" : "warning",
                                condition.code + ": " + condition.text));
  }
  std::set<std::string> explained;
  for (const Difference* d : {&c.energy, &c.time, &c.power}) {
    if (d->verdict != analysis::Verdict::kInconclusive) continue;
    if (!explained.insert(d->reason).second) continue;
    html += element("p", "coverage", "inconclusive: " + reason_text(d->reason));
  }
  for (const auto& judged : report.gates) {
    const bool passed = judged.outcome == analysis::GateOutcome::kPassed;
    html += element("p", passed ? "coverage" : "alert", "gate " + gate_text(report, judged));
  }
  return html;
}

}  // namespace

Result<std::string> comparison_to_html(const ComparisonReport& whole, const PageOptions& options) {
  const ComparisonReport report = options.redact ? redacted(whole) : whole;
  const auto& c = report.comparison;
  const std::string title =
      fmt::format("{} \u2192 {}", side(report.before, c.before), side(report.after, c.after));
  std::string html = fmt::format("<h1>{}</h1>\n", markup_text(title));
  html += element("p", "soft", test_text(report));
  const auto verdict = to_string(c.energy.verdict);
  html += hero(change_text(c.energy.ratio()), "energy", badge(verdict, verdict),
               "95 % interval of the change " + interval_text(c.energy));
  std::vector<std::vector<std::string>> rows;
  for (const Difference* d : {&c.energy, &c.time, &c.power}) {
    rows.push_back({d->name, figure_text(d->name, d->before), figure_text(d->name, d->after),
                    change_text(d->ratio()), interval_text(*d),
                    std::string(to_string(d->verdict))});
  }
  html += figure_table("Energy, time and power",
                       {"figure", "before", "after", "change", "95 %", "verdict"}, rows);
  PageParts parts{"Comparison: " + title, html + remarks(report), page_foot(options),
                  page_head(options)};
  parts.data["comparison"] = Json::parse(comparison_to_json(report));
  return assemble_page(parts);
}

}  // namespace jouleprof::report
