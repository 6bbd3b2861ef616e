#include <fmt/format.h>

#include <algorithm>

#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/markup_text.h"
#include "report/quantity.h"
#include "report/results/result_redaction.h"

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
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row[i] != "-"; }))
      continue;
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

bool is_simulated(const BenchResult& result) {
  return result.energy && result.energy->profile.simulated;
}

std::string case_html(const BenchResult& result, std::string_view tag, bool redact) {
  const auto& b = result.bench;
  std::string html =
      fmt::format("<{0}>{1}</{0}>\n", tag,
                  markup_text(fmt::format("{}, {}, batch {}", b.workload, b.mode, b.batch)));
  const auto& device = b.device_name.empty() ? b.device : b.device_name;
  html += element("p", "soft",
                  fmt::format("{} on {}, {} iteration{}", b.dtype, device, b.iterations,
                              b.iterations == 1 ? "" : "s"));
  if (!b.steady) html += element("p", "alert", "NOT STEADY: " + b.not_steady);
  const auto& l = b.latency;
  html += hero(seconds_text(l.median),
               l.mean_error ? "mean \u00b1" + percent_text(*l.mean_error) : "", "",
               fmt::format("latency, median of {} block{} · p50 {} · p90 {} · p99 {}", l.blocks,
                           l.blocks == 1 ? "" : "s", seconds_text(l.p50), seconds_text(l.p90),
                           seconds_text(l.p99)));
  return html + energies(result, redact);
}

}  // namespace

Result<std::string> bench_to_html(const model::BenchDocument& document,
                                  const std::vector<BenchResult>& results,
                                  const PageOptions& options) {
  std::string html;
  for (const auto& result : results) {
    html += case_html(result, html.empty() ? "h1" : "h2", options.redact);
  }
  if (std::any_of(results.begin(), results.end(), is_simulated)) {
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

}  // namespace jouleprof::report
