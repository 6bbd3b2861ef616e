#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/results/comparison.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

using analysis::Difference;
using analysis::Verdict;

Style style_of(const Difference& d) {
  if (d.verdict == Verdict::kHigher) return Style::kAlarm;
  return d.verdict == Verdict::kInconclusive ? Style::kAttention : Style::kBold;
}

constexpr std::size_t kBriefWarnings = 2;  // without details

class Writer {
 public:
  Writer(const ComparisonReport& report, const TextOptions& text)
      : report_(report), c_(report.comparison), page_(text, text.details ? 4 : 2) {}

  std::string write() {
    if (is_simulated(c_)) page_.note_simulated();
    page_.headline(verdict_sentence(report_), style_of(c_.energy));
    if (page_.text.details) {
      page_.blank();
      heading();
      page_.blank();
    }
    totals();
    if (!c_.rows.empty() || !c_.unmatched.empty()) {
      page_.blank();
      rows();
    } else if (report_.by != analysis::CompareBy::kTotal) {
      page_.blank();
      page_.note(std::string(to_string(report_.by)), "no rows: " + without_rows());
    }
    notes();
    return page_.joined();
  }

 private:
  static std::string side(const std::string& title, const std::vector<std::string>& runs) {
    if (runs.size() == 1 && title.empty()) return runs.front();
    return (title.empty() ? fmt::format("{}", fmt::join(runs, " ")) : title) + ", " +
           counted(runs.size(), "run");
  }

  void heading() {
    page_.note("before", side(report_.before, c_.before));
    page_.note("after", side(report_.after, c_.after));
    const auto blocks = [](std::size_t count) {
      return fmt::format("{} {}", count, count == 1 ? "block" : "blocks");
    };
    page_.note("test",
               report_.options.paired
                   ? fmt::format("{} pairs of runs, Student's t of the logarithms' differences",
                                 c_.units_before)
               : report_.options.spread
                   ? fmt::format("{} before and {} after, with a given spread of {} between them",
                                 blocks(c_.units_before), blocks(c_.units_after),
                                 percent_text(*report_.options.spread))
                   : fmt::format("{} of runs before and {} after, Student's t of the logarithms",
                                 blocks(c_.units_before), blocks(c_.units_after)));
    std::string total = domains_text(c_);
    if (!c_.excluded.empty()) {
      total += fmt::format("; without {}", fmt::join(c_.excluded, ", "));
    }
    if (!report_.per.empty()) {
      total += "; of one window " + report_.per;
    } else {
      total += c_.is_command ? "; of the command" : "; of whole devices";
    }
    page_.note("energy of", total);
  }

  static void add_row(Table& table, std::string label, const Difference& d,
                      const std::string& metric) {
    table.add({{std::move(label)},
               {figure_text(metric, d.before)},
               {figure_text(metric, d.after)},
               {change_text(d.ratio())},
               {interval_text(d)},
               {std::string(to_string(d.verdict)), style_of(d)}});
  }

  void totals() {
    Table table({"", "before", "after", "change", "95 %", "<verdict"});
    for (const Difference* d : {&c_.energy, &c_.time, &c_.power}) {
      add_row(table, d->name, *d, d->name);
    }
    page_.add(table);
  }

  std::string without_rows() const {
    switch (report_.by) {
      case analysis::CompareBy::kWindow:
        return "no run has windows; open them in the program (docs/python.md)";
      case analysis::CompareBy::kKernel:
        return "no run has a trace of kernels; record with jouleprof run --kernels";
      default:
        return "no run has a trace of layers; record with jouleprof run --layers";
    }
  }

  void rows() {
    Table table(
        {std::string(to_string(report_.by)), "before", "after", "change", "95 %", "<verdict"});
    std::size_t left = 0;
    for (const Difference& d : c_.rows) {
      if (report_.most_rows > 0 && left >= report_.most_rows) break;
      ++left;
      add_row(table, label(d.name, d.detail), d, "energy");
    }
    page_.add(table);
    if (left < c_.rows.size()) {
      page_.note("", fmt::format("{} more rows; --json has all", c_.rows.size() - left));
    }
    unmatched();
  }

  std::string label(const std::string& name, const std::string& detail) const {
    return page_.safe(detail.empty() ? name : name + "  " + detail);
  }

  void unmatched() {
    for (const bool before : {true, false}) {
      std::vector<std::string> names;
      double joules = 0;
      std::size_t count = 0, unknown = 0;
      for (const auto& each : c_.unmatched) {
        if (each.before != before) continue;
        joules += each.row.energy.value.value_or(0);
        if (!each.row.energy.value) ++unknown;
        if (++count <= 5) names.push_back(each.row.name);
      }
      if (count == 0) continue;
      if (count > names.size()) names.push_back("...");
      std::string energy;
      if (unknown < count) {
        energy = fmt::format(", with {} in their first run", energy_text(Energy::joules(joules)));
      }
      if (unknown > 0) energy += fmt::format(", {} of unknown energy", unknown);
      page_.note(before ? "only before" : "only after",
                 fmt::format("{}{}: {}", counted(count, "row"), energy, fmt::join(names, ", ")));
    }
  }

  void costs() {
    const auto& factors = report_.costs;
    const auto& before = c_.energy.before;
    const auto& after = c_.energy.after;
    const std::string pue =
        factors.pue ? fmt::format(" x PUE {:g} (--pue)", *factors.pue) : std::string();
    if (factors.price && before && after) {
      const auto& price = *factors.price;
      const std::string unit = price.currency.empty() ? "" : " " + price.currency;
      page_.note("cost", fmt::format("{:.4g}{} before, {:.4g}{} after, at {:g}{}/kWh (--price){}",
                                     *factors.money(before), unit, *factors.money(after), unit,
                                     price.per_kilowatt_hour, unit, pue));
    }
    if (factors.grams && before && after) {
      page_.note("carbon",
                 fmt::format("{:.4g} g CO2e before, {:.4g} g after, at {:g} g/kWh (--carbon){}",
                             *factors.carbon_grams(before), *factors.carbon_grams(after),
                             *factors.grams, pue));
    }
    if (factors.any() && page_.text.details) page_.note("scope", std::string(scope_of_costs()));
  }

  void notes() {
    if (page_.text.details) page_.blank();
    costs();
    std::set<std::string> explained;
    std::size_t warnings = 0;
    for (const auto& condition : c_.conditions) {
      explained.insert(condition.code);
      if (!condition.blocks) continue;
      page_.note("REFUSED", condition.code + ": " + condition.text, Style::kAlarm);
    }
    if (c_.is_blocked()) {
      page_.note(
          "", "sides that differ in this cannot be compared; --accept CODE compares them anyway");
    }
    for (const auto& condition : c_.conditions) {
      if (condition.blocks || condition.code == kSimulatedCode) continue;
      if (!page_.text.details && ++warnings > kBriefWarnings) continue;
      page_.note("warning", condition.code + ": " + condition.text, Style::kAttention);
    }
    const auto explain = [&](const Difference& d) {
      if (d.verdict != Verdict::kInconclusive || !explained.insert(d.reason).second) return;
      page_.note("why", d.reason + ": " + reason_text(d.reason));
    };
    for (const Difference* d : {&c_.energy, &c_.time, &c_.power}) explain(*d);
    for (const Difference& d : c_.rows) explain(d);
    for (const auto& judged : report_.gates) {
      page_.note("gate", gate_text(report_, judged),
                 judged.outcome == analysis::GateOutcome::kPassed ? Style::kBold : Style::kAlarm);
    }
    page_.end_block();
    if (page_.text.details) return;
    const std::size_t more = warnings > kBriefWarnings ? warnings - kBriefWarnings : 0;
    page_.note("details", fmt::format("--details: {}runs, test, devices",
                                      more == 0   ? std::string()
                                      : more == 1 ? std::string("1 more warning, ")
                                                  : fmt::format("{} more warnings, ", more)));
  }

  const ComparisonReport& report_;
  const analysis::Comparison& c_;
  TextPage page_;
};

}  // namespace

std::string comparison_to_text(const ComparisonReport& report, const TextOptions& text) {
  return Writer(report, text).write();
}

}  // namespace jouleprof::report
