#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/compare/statistics.h"
#include "base/text.h"
#include "model/sweep.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/quantity.h"
#include "report/results/redaction.h"

namespace jouleprof::report {
namespace {

// Down to nanojoules: a token may take less than a microjoule.
std::string small_energy_text(double joules) {
  if (joules == 0 || joules >= 1e-3) return energy_text(Energy::joules(joules));
  return number_text(joules * 1e6) + " uJ";
}

std::string seconds_text(double s) { return duration_text(duration_of(s)); }

std::string cell(const std::optional<JoulesPer>& per) {
  if (!per) return "-";
  const auto error = per->joules > 0 ? " \u00b1" + percent_text(per->error / per->joules) : "";
  const bool estimated = per->provenance == model::Provenance::kEstimated;
  return small_energy_text(per->joules) + error + (estimated ? " ESTIMATED" : "");
}

// Levels that no row has: a warning says why.
void drop_absent(std::vector<std::string>& headings, std::vector<std::vector<std::string>>& rows) {
  for (std::size_t i = headings.size(); i-- > 1;) {
    if (std::ranges::any_of(rows, [&](const auto& row) { return row[i] != "-"; })) continue;
    headings.erase(headings.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string energies(const BenchResult& result, bool redact) {
  if (!result.energy) {
    const auto& reason = result.energy.error().message;
    return element("p", "alert",
                   "Energy unavailable: " + (redact ? without_paths(reason) : reason));
  }
  std::string device = result.bench.energy_device;
  if (device.empty()) device = "device";
  std::vector<std::string> headings{"one", device, "rest", "held", "active", "total"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : bench_rows(result.bench, *result.energy)) {
    rows.push_back({(row.phase.empty() ? "" : row.phase + ", ") + row.unit, cell(row.device),
                    cell(row.rest), cell(row.held), cell(row.active), cell(row.total)});
  }
  drop_absent(headings, rows);
  std::string html = figure_table(
      fmt::format("Energy of one unit of work, batch {}", result.bench.batch), headings, rows);
  for (const auto& warning : result.energy->profile.warnings) {
    html += element("p", "soft", "warning: " + (redact ? without_paths(warning) : warning));
  }
  return html;
}

bool has_simulated_energy(const BenchResult& result) {
  return result.energy && result.energy->profile.simulated;
}

// The energy of one unit of work is what a benchmark of energy is for.
std::string unit_heroes(const BenchResult& result) {
  if (!result.energy) return "";
  for (const auto& row : bench_rows(result.bench, *result.energy)) {
    const auto& per = row.device ? row.device : row.total;
    if (!per) continue;
    const std::string& device = result.bench.energy_device;
    return hero(
        small_energy_text(per->joules),
        per->joules > 0 ? "\u00b1" + percent_text(per->error / per->joules) : "",
        badge(per->provenance),
        fmt::format("energy of one {}{}{}", row.phase.empty() ? "" : row.phase + ", ", row.unit,
                    !row.device      ? " in all"
                    : device.empty() ? " on the device"
                                     : " on " + device));
  }
  return "";
}

std::string case_html(const BenchResult& result, std::string_view tag, bool redact) {
  const auto& b = result.bench;
  std::string html =
      fmt::format("<{0}>{1}</{0}>\n", tag,
                  markup_text(fmt::format("{}, {}, batch {}", b.workload, b.mode, b.batch)));
  const auto& device = b.device_name.empty() ? b.device : b.device_name;
  html += element("p", "soft",
                  fmt::format("{} on {}, {}", b.dtype, device, counted(b.iterations, "iteration")));
  if (!b.steady) html += element("p", "alert", "NOT STEADY: " + b.not_steady);
  const auto& l = b.latency;
  const std::string mean = l.mean_error ? fmt::format(" · mean {} \u00b1{}", seconds_text(l.mean),
                                                      percent_text(*l.mean_error))
                                        : "";
  html += hero(
      seconds_text(l.median), "", "",
      fmt::format("latency, median of {}{} · p50 {} · p90 {} · p99 {}", counted(l.blocks, "block"),
                  mean, seconds_text(l.p50), seconds_text(l.p90), seconds_text(l.p99)));
  return html + unit_heroes(result) + energies(result, redact);
}

std::string hosts_table(const analysis::Job& job) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& host : job.hosts) {
    const auto q = quoted(host);
    rows.push_back({host.host, std::to_string(host.recordings.size()), duration_text(host.covered),
                    q ? quoted_energy_text(*q) : "unavailable", q ? quoted_error_text(*q) : "",
                    q ? quoted_provenance_text(*q) : ""});
  }
  return figure_table("Energy by host",
                      {"host", "recordings", "time", "energy", "95 %", "provenance"}, rows);
}

}  // namespace

Result<std::string> bench_to_html(const model::BenchDocument& document,
                                  const std::vector<BenchResult>& results,
                                  const PageOptions& options) {
  std::string html;
  for (const auto& result : results) {
    html += case_html(result, html.empty() ? "h1" : "h2", options.redact);
  }
  if (std::ranges::any_of(results, has_simulated_energy)) {
    html = element("p", "alert", kSimulatedText) + html;
  }
  const std::string workload = results.empty() ? "" : ": " + results.front().bench.workload;
  PageParts parts{"Benchmark" + workload, html, page_foot(options), page_head(options)};
  // What the page shows of it.
  const Json all = Json::parse(bench_to_json(document, results));
  Json& cases = parts.data["bench"]["cases"] = Json::array();
  for (const Json& each : all["cases"]) {
    Json& one = cases.emplace_back();
    for (const char* key : {"workload", "mode", "batch", "energy_device", "latency"}) {
      one[key] = each.value(key, Json());
    }
    const Json& energy = each["energy"];
    one["energy"] = energy.is_null() ? energy : Json{{"per", energy["per"]}};
    one["energy_reason"] = each["energy_reason"];
    if (options.redact && each["energy_reason"].is_string()) {
      one["energy_reason"] = without_paths(each["energy_reason"]);
    }
  }
  return assemble_page(parts);
}

namespace {

using analysis::Difference;

std::string side(const std::string& title, const std::vector<std::string>& runs) {
  if (runs.size() == 1 && title.empty()) return runs.front();
  return fmt::format("{} ({})", title.empty() ? runs.front() + " \u2026" : title,
                     counted(runs.size(), "run"));
}

std::string test_text(const ComparisonReport& report) {
  const auto& c = report.comparison;
  std::string text = report.options.paired
                         ? fmt::format("{} pairs of runs.", c.units_before)
                         : fmt::format("{} and {} blocks of runs.", c.units_before, c.units_after);
  text += " Total: " + domains_text(c);
  if (!c.excluded.empty()) text += fmt::format("; without {}", fmt::join(c.excluded, ", "));
  if (!report.per.empty()) text += fmt::format("; of one window {}", report.per);
  return text + ".";
}

// What prevents a verdict, what was found odd, why a verdict is missing, and the gates.
std::string remarks(const ComparisonReport& report) {
  const auto& c = report.comparison;
  std::string html;
  for (const auto& condition : c.conditions) {
    if (condition.code == kSimulatedCode) continue;
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

// Curves of the first runs; the energies of all.
Json compared_runs(const std::vector<ComparedRun>& runs) {
  constexpr std::size_t kMostDrawn = 8;
  Json list = Json::array();
  for (const auto& run : runs) {
    Json& one = list.emplace_back();
    one["energy_joules"] = optional_json(run.joules, number_json);
    one["seconds"] = optional_json(run.seconds, number_json);
    one["curves"] = Json::array();
    if (list.size() > kMostDrawn) continue;
    for (const auto& curve : run.curves) {
      one["curves"].push_back({{"domain", curve.domain},
                               {"step_seconds", seconds_json(curve.step)},
                               {"watts", list_json(curve.watts, [](const auto& w) {
                                  return w ? decimal(fixed_decimal(*w, 1)) : Json(nullptr);
                                })}});
    }
  }
  return list;
}

}  // namespace

Result<std::string> comparison_to_html(const ComparisonReport& whole, const PageOptions& options) {
  const ComparisonReport report = options.redact ? redacted(whole) : whole;
  const auto& c = report.comparison;
  const std::string title =
      fmt::format("{} \u2192 {}", side(report.before, c.before), side(report.after, c.after));
  std::string html = fmt::format("<h1>{}</h1>\n", markup_text(title));
  if (is_simulated(c)) html += element("p", "alert", kSimulatedText);
  html += element("p", "soft", test_text(report));
  html += element("p", "answer", verdict_sentence(report));
  const auto verdict = to_string(c.energy.verdict);
  if (!c.is_blocked()) {
    html += hero(change_text(c.energy.ratio()), "energy", badge(verdict, verdict),
                 "95 % interval of the change " + interval_text(c.energy));
  }
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
  parts.data["compared_runs"] = {{"before", compared_runs(report.before_runs)},
                                 {"after", compared_runs(report.after_runs)}};
  return assemble_page(parts);
}

Result<std::string> job_to_html(const analysis::Job& whole, const JobOptions& job_options,
                                const PageOptions& options) {
  const analysis::Job job = options.redact ? redacted(whole) : whole;
  std::string html = "<h1>Energy of a job</h1>\n";
  std::string line = fmt::format("{} of {}", counted(job.recordings, "recording"),
                                 counted(job.hosts.size(), "machine"));
  if (job.began && job.elapsed) {
    line += fmt::format(", {} from {}", duration_text(*job.elapsed), utc_seconds_text(*job.began));
  }
  html += element("p", "soft", line);
  if (is_simulated(job)) html += element("p", "alert", kSimulatedText);
  for (const auto& lost : lost_texts(job)) html += element("p", "alert", "PARTIAL: " + lost);
  if (const auto q = quoted(job, job_options.whole_machine)) {
    html += hero(quoted_energy_text(*q), quoted_error_text(*q), badge(q->provenance),
                 quoted_interval_text(*q));
    if (q->is_command) {
      const Quoted all = *quoted(job, true);
      html += element("p", "coverage",
                      fmt::format("Of the commands. All devices: {} {}.", quoted_energy_text(all),
                                  quoted_error_text(all)));
    }
  } else {
    html += hero("no energy", "", badge(model::Provenance::kUnavailable),
                 "No domain's energy is known; the table of hosts has the reasons.");
  }
  if (const auto ranks = ranks_text(job.rank_groups); !ranks.empty()) {
    html += element("p", "coverage", "Of " + ranks + ".");
  }
  const auto costs = costs_of(job, job_options.costs, job_options.whole_machine);
  if (costs) {
    for (const auto& cost : cost_lines(*costs, false)) {
      html += element("p", "coverage", cost.label + ": " + cost.words);
    }
  }
  html += hosts_table(job);
  for (const auto& slurm : job_options.slurm) {
    html += element("p", "coverage", "Slurm, " + slurm_text(slurm));
  }
  for (const auto& warning : job.warnings) html += element("p", "coverage", "warning: " + warning);
  PageParts parts{"Energy of a job", html, page_foot(options), page_head(options)};
  const auto document = job_to_json(job, job_options);
  if (!document) return forward_error(document);
  // The page shows no more of it.
  const Json all = Json::parse(*document);
  parts.data["job"] = {{"hosts", all["hosts"]}, {"ranks", all["ranks"]}};
  return assemble_page(parts);
}

namespace {

// Half of the 95 % interval of a mean by the spread of its runs; empty of one run.
std::string spread_text(const analysis::RatedPoint& rated, double analysis::SweepSample::*of) {
  std::vector<double> logarithms;
  for (const auto& sample : rated.point->samples) {
    if (sample.*of <= 0) return "";
    logarithms.push_back(std::log(sample.*of));
  }
  if (logarithms.size() < 2) return "";
  const auto half = analysis::estimate_of_pairs(logarithms).half;
  return half ? " \u00b1" + percent_text(std::expm1(*half)) : "";
}

std::string name_of(const AdvisedSweep& advised) {
  std::string name = "Sweep of the " + knob_text(advised.sweep.knob);
  for (const auto& label : advised.sweep.labels) name += ", " + label.name + " " + label.value;
  return name;
}

std::string sweep_html(const AdvisedSweep& advised, std::string_view tag, bool redact) {
  std::string html = fmt::format("<{0}>{1}</{0}>\n", tag, markup_text(name_of(advised)));
  if (!advised.advice) {
    const auto& reason = advised.advice.error().message;
    return html +
           element("p", "alert", "No recommendation: " + (redact ? without_paths(reason) : reason));
  }
  const auto& advice = *advised.advice;
  const auto setting = [&](const analysis::RatedPoint& rated) {
    return setting_text(advised.sweep.knob, rated.point->setting);
  };
  const auto& best = advice.points[advice.best];
  html +=
      hero(setting(best), "recommended", "",
           fmt::format("saving {} of energy and slowdown {} against {}", with_interval(best.saving),
                       with_interval(best.slowdown), setting(advice.points[advice.reference])));
  std::vector<std::vector<std::string>> rows;
  for (const auto& rated : advice.points) {
    std::string unbroken = setting(rated);
    unbroken.replace(unbroken.find(' '), 1, "\u00a0");
    rows.push_back({std::move(unbroken), std::to_string(rated.point->samples.size()),
                    energy_text(Energy::joules(rated.mean.joules)) +
                        spread_text(rated, &analysis::SweepSample::joules),
                    with_interval(rated.saving),
                    duration_text(duration_of(rated.mean.seconds)) +
                        spread_text(rated, &analysis::SweepSample::seconds),
                    with_interval(rated.slowdown),
                    number_text(rated.mean.joules / rated.mean.seconds)});
  }
  return html + figure_table(name_of(advised),
                             {"setting", "runs", "energy", "saving", "time", "slowdown", "mean W"},
                             rows);
}

// What the recommendation's document has not: the state of the GPU in each run.
Json runs_json(const std::vector<model::SweepRun>& runs) {
  Json list = Json::array();
  for (const auto& run : runs) {
    if (!run.is_ranked()) continue;
    list.push_back(
        {{"setting", number_json(run.setting)},
         {"sm_clock_megahertz", optional_json(run.sm_megahertz, number_json)},
         {"temperature_celsius", optional_json(run.end_celsius, number_json)},
         {"sm_utilisation_ratio", optional_json(run.sm_utilisation, number_json)},
         {"memory_utilisation_ratio", optional_json(run.memory_utilisation, number_json)}});
  }
  return list;
}

}  // namespace

Result<std::string> recommendation_to_html(const std::vector<AdvisedSweep>& sweeps,
                                           const RecommendationOptions& recommendation,
                                           const std::vector<model::SweepRun>& runs,
                                           const PageOptions& options) {
  std::string html;
  for (const auto& advised : sweeps) {
    html += sweep_html(advised, html.empty() ? "h1" : "h2", options.redact);
  }
  if (sweeps.front().sweep.simulated) html = element("p", "alert", kSimulatedText) + html;
  PageParts parts{sweeps.size() == 1 ? name_of(sweeps.front()) : "Sweeps", html, page_foot(options),
                  page_head(options)};
  parts.data["recommendation"] = Json::parse(recommendation_to_json(sweeps, recommendation));
  for (Json& sweep : parts.data["recommendation"]["sweeps"]) {
    if (!options.redact) break;
    if (sweep["reason"].is_string()) sweep["reason"] = without_paths(sweep["reason"]);
    for (const char* key : {"unranked", "left_out_runs"}) {
      for (Json& named : sweep[key]) named["reason"] = without_paths(named["reason"]);
    }
  }
  parts.data["sweep_runs"] = runs_json(runs);
  return assemble_page(parts);
}

}  // namespace jouleprof::report
