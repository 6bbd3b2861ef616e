#include "report/results/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using analysis::Difference;
using analysis::Verdict;

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kReasons{{
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
    {"not_positive", "the energy is not above zero in each run: below what can be resolved"},
    {"undivided",
     "which part of the energy is the command's is not known in each run: other processes used the "
     "devices, too, or may have; --whole-machine compares all energy"},
    {"rest_unknown",
     "the energy at rest is part of some runs only, and not known in each of them; --whole-machine "
     "compares all energy"},
    {"not_resolvable", "the energy is not resolvable in each run"},
}};

double rounded(double percent) { return std::abs(percent) < 0.005 ? 0.0 : percent; }

std::string number(double percent) {
  const double value = rounded(percent);
  return fmt::format("{:+.{}f}", value, std::abs(value) < 9.95 ? 2 : 1);
}

// A side in a sentence.
std::string side_name(const std::string& title, const std::vector<std::string>& runs,
                      const char* otherwise) {
  constexpr std::size_t kLongest = 60;
  const std::string& name = title.empty() && runs.size() == 1 ? runs.front() : title;
  return name.empty() || name.size() > kLongest ? otherwise : fmt::format("'{}'", name);
}

class Sentence {
 public:
  explicit Sentence(const ComparisonReport& report)
      : report_(report),
        c_(report.comparison),
        before_(side_name(report.before, c_.before, "the side before")),
        after_(side_name(report.after, c_.after, "the side after")) {}

  std::string text() const {
    if (c_.is_blocked()) {
      const auto blocks = [](const analysis::Condition& each) { return each.blocks; };
      return fmt::format("No verdict: the sides cannot be compared ({})",
                         std::ranges::find_if(c_.conditions, blocks)->code);
    }
    const std::string energy = of_energy();
    if (c_.energy.verdict != Verdict::kInconclusive || !c_.time.low()) return energy;
    return energy + ". " + of_time();
  }

 private:
  // "1.23 times less energy than ... (95 %: 1.19 to 1.27)": the greater one over the less.
  static std::string times(const Difference& d, std::string_view words, const std::string& other) {
    const double sign = d.log_ratio->mean < 0 ? -1 : 1;
    const double ends[] = {sign * d.log_ratio->low(), sign * d.log_ratio->high()};
    const double ratio = std::exp(sign * d.log_ratio->mean);
    const int digits = ratio < 1.2 ? 4 : 3;
    return fmt::format("{:.{}g} times {} than {} (95 %: {:.{}g} to {:.{}g})", ratio, digits, words,
                       other, std::exp(std::min(ends[0], ends[1])), digits,
                       std::exp(std::max(ends[0], ends[1])), digits);
  }

  std::string of_energy() const {
    const Difference& d = c_.energy;
    const std::string unit =
        report_.per.empty() ? std::string() : fmt::format("a window {} of ", report_.per);
    switch (d.verdict) {
      case Verdict::kLower:
      case Verdict::kHigher:
        return fmt::format(
            "{}{} uses {}", unit, after_,
            times(d, d.verdict == Verdict::kLower ? "less energy" : "more energy", before_));
      case Verdict::kSame:
        return fmt::format("{}{} uses the same energy as {}: {} (95 %: {})", unit, after_, before_,
                           change_text(d.ratio()), interval_text(d));
      case Verdict::kInconclusive:
        break;
    }
    return undecided(d);
  }

  std::string undecided(const Difference& d) const {
    const std::string change = change_text(d.ratio());
    if (d.reason == "spread_unknown") {
      const bool single = c_.before.size() == 1 && c_.after.size() == 1;
      return fmt::format(
          "{} cannot decide: the energy changed by {}, and how much runs vary is not known. "
          "compare 'COMMAND BEFORE' 'COMMAND AFTER' runs both in turn and decides; so do two or "
          "more recordings of each side that were made in turn",
          single ? "Two single recordings" : "Runs of one sitting for each side", change);
    }
    if (d.reason == "estimated") {
      return fmt::format(
          "The difference of energy cannot be decided: {} (95 %: {}). The energy is an estimate, "
          "whose error does not cancel: more runs do not help, a sensor does (jouleprof doctor)",
          change, interval_text(d));
    }
    if (d.at_most) {
      const std::string most = energy_text(Energy::joules(*d.at_most));
      const char* const why = d.reason == "undivided"
                                  ? "which part is the command's is not known. --whole-machine"
                                  : "it is below what can be resolved. Longer commands resolve it; "
                                    "--whole-machine";
      return fmt::format(
          "No difference of energy above {} can be seen (95 %: -{} to +{}): {} compares all "
          "devices",
          most, most, most, why);
    }
    if (d.reason != "interval_too_wide") {
      return fmt::format("No verdict on the energy: {}", reason_text(d.reason));
    }
    return fmt::format("The difference of energy cannot be seen: {} (95 %: {}); {}", change,
                       interval_text(d), more(d));
  }

  // What would decide, if it varies as it did.
  std::string more(const Difference& d) const {
    const auto units = std::min(c_.units_before, c_.units_after);
    const char* what = report_.options.paired ? "pairs" : "runs of each side, made in turn,";
    const auto needed = analysis::units_to_decide(*d.log_ratio, units, report_.options.paired,
                                                  std::log1p(report_.options.same_within));
    return needed ? fmt::format("about {} more {} would decide", *needed - units, what)
                  : fmt::format("not even 1000 {} would decide", what);
  }

  std::string of_time() const {
    const Difference& d = c_.time;
    if (d.verdict == Verdict::kSame) {
      return fmt::format("The time is the same: {} (95 %: {})", change_text(d.ratio()),
                         interval_text(d));
    }
    if (d.verdict == Verdict::kInconclusive) {
      return fmt::format("No difference of time can be seen: {} (95 %: {})", change_text(d.ratio()),
                         interval_text(d));
    }
    const bool less = d.verdict == Verdict::kLower;
    return fmt::format("{} takes {}", after_, times(d, less ? "less time" : "more time", before_));
  }

  const ComparisonReport& report_;
  const analysis::Comparison& c_;
  std::string before_;
  std::string after_;
};

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

struct Case {
  std::string name;
  std::string text;
  analysis::GateOutcome outcome;
};

}  // namespace

bool is_simulated(const analysis::Comparison& comparison) {
  return std::ranges::find(comparison.conditions, kSimulatedCode, &analysis::Condition::code) !=
         comparison.conditions.end();
}

std::string domains_text(const analysis::Comparison& comparison) {
  const auto before = fmt::format("{}", fmt::join(comparison.domains, " + "));
  if (comparison.domains_after.empty()) return before;
  return fmt::format("{} before, {} after", before, fmt::join(comparison.domains_after, " + "));
}

std::string verdict_sentence(const ComparisonReport& report) { return Sentence(report).text(); }

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
    } else if (c == '&') {
      out += "&amp;";  // or a name such as "&lt;" would be read as another
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
