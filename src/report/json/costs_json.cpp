#include "report/json/costs_json.h"

#include <algorithm>

#include "report/quantity.h"

namespace jouleprof::report {

Json costs_json(const Costs& costs) {
  const auto& factors = costs.factors;
  Json j = Json::object();
  j["energy_joules"] = joules_json(costs.energy);
  j["of"] = costs.is_command ? "command" : "machine";
  j["interval_joules"] = {joules_json(std::max(costs.energy - costs.error, Energy{})),
                          joules_json(costs.energy + costs.upper_error)};
  j["domains"] = costs.domains;
  j["pue"] = optional_json(factors.pue, number_json);
  j["money"] = optional_json(costs.money, [](double v) { return decimal(fixed_decimal(v, 9)); });
  j["currency"] = factors.price ? text_json(factors.price->currency) : Json(nullptr);
  j["price_per_kilowatt_hour"] =
      factors.price ? number_json(factors.price->per_kilowatt_hour) : Json(nullptr);
  j["carbon_grams"] =
      optional_json(costs.carbon_grams, [](double v) { return decimal(fixed_decimal(v, 9)); });
  j["carbon_grams_per_kilowatt_hour"] = optional_json(costs.mean_grams, number_json);
  j["carbon_source"] = nullptr;
  if (factors.grams) j["carbon_source"] = {{"option", "--carbon"}};
  if (const auto& series = factors.series) {
    j["carbon_source"] = {{"file", series->file},
                          {"zone", text_json(series->zone)},
                          {"column", text_json(series->column)},
                          {"step_seconds", seconds_json(series->length)},
                          {"steps", costs.steps},
                          {"estimated_steps", costs.estimated_steps}};
  }
  j["scope"] = scope_of_costs();
  return j;
}

}  // namespace jouleprof::report
