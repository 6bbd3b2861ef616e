#include <fmt/format.h>

#include <algorithm>

#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/markup_text.h"
#include "report/quantity.h"

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

std::string energies(const BenchResult& result) {
  if (!result.energy) {
    return element("p", "alert", "Energy unavailable: " + result.energy.error().message);
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : bench_rows(result.bench, *result.energy)) {
    rows.push_back({(row.phase.empty() ? "" : row.phase + ", ") + row.unit, cell(row.device),
                    cell(row.rest), cell(row.held), cell(row.active), cell(row.total)});
  }
  std::string device = result.bench.energy_device;
  if (device.empty()) device = "device";
  return figure_table(fmt::format("Energy of one unit of work, batch {}", result.bench.batch),
                      {"one", device, "rest", "held", "active", "total"}, rows);
}

bool is_simulated(const BenchResult& result) {
  return result.energy && result.energy->profile.simulated;
}

std::string case_html(const BenchResult& result, std::string_view tag) {
  const auto& b = result.bench;
  std::string html =
      fmt::format("<{0}>{1}</{0}>\n", tag,
                  markup_text(fmt::format("{}, {}, batch {}", b.workload, b.mode, b.batch)));
  const auto& device = b.device_name.empty() ? b.device : b.device_name;
  html +=
      element("p", "soft", fmt::format("{} on {}, {} iterations", b.dtype, device, b.iterations));
  if (!b.steady) html += element("p", "alert", "NOT STEADY: " + b.not_steady);
  const auto& l = b.latency;
  html += hero(seconds_text(l.median),
               l.mean_error ? "mean \u00b1" + percent_text(*l.mean_error) : "", "",
               fmt::format("latency, median of {} blocks · p50 {} · p90 {} · p99 {}", l.blocks,
                           seconds_text(l.p50), seconds_text(l.p90), seconds_text(l.p99)));
  return html + energies(result);
}

}  // namespace

Result<std::string> bench_to_html(const model::BenchDocument& document,
                                  const std::vector<BenchResult>& results,
                                  const PageOptions& options) {
  std::string html;
  for (const auto& result : results) html += case_html(result, html.empty() ? "h1" : "h2");
  if (std::any_of(results.begin(), results.end(), is_simulated)) {
    html = element("p", "alert", kSimulatedText) + html;
  }
  const std::string workload = results.empty() ? "" : ": " + results.front().bench.workload;
  PageParts parts{"Benchmark" + workload, html, page_foot(options), page_head(options)};
  parts.data["bench"] = Json::parse(bench_to_json(document, results));
  // The page has no table of layers.
  for (Json& each : parts.data["bench"]["cases"]) {
    if (each.contains("model") && each["model"].is_object()) each["model"].erase("layers");
  }
  return assemble_page(parts);
}

}  // namespace jouleprof::report
