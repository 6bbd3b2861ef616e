#include <fmt/format.h>

#include <cmath>

#include "model/device/knob_words.h"
#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/markup_text.h"
#include "report/quantity.h"
#include "report/results/result_redaction.h"

namespace jouleprof::report {
namespace {

using analysis::Change;

std::string percent(double ratio) {
  return fmt::format("{:.1f} %", std::abs(ratio) < 0.0005 ? 0.0 : 100 * ratio);
}

std::string with_interval(const Change& change) {
  if (!change.interval) return percent(change.ratio);
  return fmt::format("{} ({:.1f} to {:.1f})", percent(change.ratio), 100 * change.interval->low,
                     100 * change.interval->high);
}

std::string name_of(const AdvisedSweep& advised) {
  const auto* words = model::knob_words(advised.sweep.knob);
  std::string name =
      "Sweep of the " + std::string(words != nullptr ? words->name : advised.sweep.knob);
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
  const auto* words = model::knob_words(advised.sweep.knob);
  const std::string_view unit = words != nullptr ? words->unit : "";
  const auto& best = advice.points[advice.best];
  html += hero(fmt::format("{:g} {}", best.point->setting, unit), "recommended", "",
               fmt::format("saving {} of energy and slowdown {} against {:g} {}",
                           with_interval(best.saving), with_interval(best.slowdown),
                           advice.points[advice.reference].point->setting, unit));
  std::vector<std::vector<std::string>> rows;
  for (const auto& rated : advice.points) {
    rows.push_back({fmt::format("{:g}\u00a0{}", rated.point->setting, unit),
                    std::to_string(rated.point->samples.size()),
                    energy_text(Energy::joules(rated.mean.joules)), with_interval(rated.saving),
                    duration_text(duration_of(rated.mean.seconds)), with_interval(rated.slowdown),
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
    for (Json& unranked : sweep["unranked"]) {
      unranked["reason"] = without_paths(unranked["reason"]);
    }
  }
  parts.data["sweep_runs"] = runs_json(runs);
  return assemble_page(parts);
}

}  // namespace jouleprof::report
