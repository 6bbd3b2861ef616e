#include <cmath>

#include "report/json/json_text.h"
#include "report/results/recommendation.h"

namespace jouleprof::report {
namespace {

constexpr const char* kSchema = "jouleprof.recommendation/1";

Json interval_json(const std::optional<analysis::Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({number_json(interval->low), number_json(interval->high)});
}

Json point_json(const analysis::RatedPoint& rated) {
  Json j = Json::object();
  j["setting"] = number_json(rated.point->setting);
  j["measurements"] = rated.point->samples.size();
  j["samples"] = Json::array();
  for (const auto& sample : rated.point->samples) {
    j["samples"].push_back(
        {{"seconds", number_json(sample.seconds)}, {"energy_joules", number_json(sample.joules)}});
  }
  j["seconds"] = number_json(rated.mean.seconds);
  j["energy_joules"] = number_json(rated.mean.joules);
  j["mean_watts"] = number_json(rated.mean.joules / rated.mean.seconds);
  j["slowdown_ratio"] = number_json(rated.slowdown.ratio);
  j["slowdown_interval_ratio"] = interval_json(rated.slowdown.interval);
  j["saving_ratio"] = number_json(rated.saving.ratio);
  j["saving_interval_ratio"] = interval_json(rated.saving.interval);
  j["score"] = number_json(rated.score);
  j["feasible"] = rated.feasible;
  j["probability_within_ratio"] = optional_json(rated.probability_within, number_json);
  j["on_pareto_front"] = rated.on_pareto_front;
  j["probability_of_best_ratio"] = optional_json(rated.probability_of_best, number_json);
  return j;
}

Json sweep_json(const AdvisedSweep& advised, const RecommendationOptions& options) {
  Json j = Json::object();
  j["knob"] = advised.sweep.knob;
  j["labels"] = Json::array();
  for (const auto& label : advised.sweep.labels) {
    j["labels"].push_back({{"name", label.name}, {"value", label.value}});
  }
  j["simulated"] = advised.sweep.simulated;
  j["left_out"] = advised.sweep.left_out;
  const auto& advice = advised.advice;
  j["reason"] = advice ? Json(nullptr) : Json(advice.error().message);
  j["recommended"] = advice ? number_json(advice->points[advice->best].point->setting) : nullptr;
  j["reference"] = advice ? number_json(advice->points[advice->reference].point->setting) : nullptr;
  j["equal_within_error"] = Json::array();
  j["points"] = Json::array();
  j["unranked"] = Json::array();
  for (const auto& unranked : advised.sweep.unranked) {
    j["unranked"].push_back(
        {{"setting", number_json(unranked.setting)}, {"reason", unranked.reason}});
  }
  j["found"] = optional_json(advised.sweep.found, number_json);
  for (const char* key : {"saving_against_found_ratio", "saving_against_found_interval_ratio",
                          "slowdown_against_found_ratio", "slowdown_against_found_interval_ratio",
                          "regret_ratio", "saved_joules_per_day"}) {
    j[key] = nullptr;
  }
  if (!advice) return j;
  for (const std::size_t i : advice->ties) {
    j["equal_within_error"].push_back(number_json(advice->points[i].point->setting));
  }
  for (const auto& rated : advice->points) j["points"].push_back(point_json(rated));
  j["regret_ratio"] = optional_json(advice->regret, number_json);
  if (const auto& saving = advice->saving_against_found) {
    j["saving_against_found_ratio"] = number_json(saving->ratio);
    j["saving_against_found_interval_ratio"] = interval_json(saving->interval);
  }
  if (const auto& slowdown = advice->slowdown_against_found) {
    j["slowdown_against_found_ratio"] = number_json(slowdown->ratio);
    j["slowdown_against_found_interval_ratio"] = interval_json(slowdown->interval);
  }
  if (options.daily) {
    j["saved_joules_per_day"] = number_json(saved_joules_per_day(*advice, *options.daily));
  }
  return j;
}

}  // namespace

Result<std::string> recommendation_to_zeus_profile(const AdvisedSweep& sweep) {
  if (sweep.sweep.knob != "power_limit_watts") {
    return fail(Errc::kUnsupported,
                "a profile of Zeus holds power limits only; this sweep is of clocks");
  }
  if (!sweep.advice) return tl::unexpected(sweep.advice.error());
  Json measurements = Json::array();
  for (const auto& rated : sweep.advice->points) {
    measurements.push_back({{"power_limit", std::lround(rated.point->setting)},
                            {"energy", rated.mean.joules},
                            {"time", rated.mean.seconds}});
  }
  return Json{{"measurements", std::move(measurements)}}.dump(4) + '\n';
}

std::string recommendation_to_json(const std::vector<AdvisedSweep>& sweeps,
                                   const RecommendationOptions& options) {
  Json document = Json::object();
  document["schema"] = kSchema;
  document["objective"] = to_string(options.choice.objective);
  document["eta"] = options.choice.objective == analysis::Objective::kCost
                        ? number_json(options.choice.eta)
                        : Json(nullptr);
  document["max_slowdown_ratio"] = optional_json(options.choice.max_slowdown, number_json);
  document["max_watts"] = optional_json(options.choice.max_watts, number_json);
  document["sweeps"] = Json::array();
  for (const auto& sweep : sweeps) document["sweeps"].push_back(sweep_json(sweep, options));
  return write_json(document) + '\n';
}

}  // namespace jouleprof::report
