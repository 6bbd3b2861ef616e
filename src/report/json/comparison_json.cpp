#include <cmath>

#include "report/json/json_text.h"
#include "report/quantity.h"
#include "report/results/comparison.h"

namespace jouleprof::report {
namespace {

constexpr const char* kSchema = "jouleprof.comparison/2";

Json difference_json(const analysis::Difference& d, const std::string& unit) {
  Json j = Json::object();
  j["name"] = d.name;
  j["detail"] = text_json(d.detail);
  j["before_" + unit] = optional_json(d.before, number_json);
  j["after_" + unit] = optional_json(d.after, number_json);
  j["change_ratio"] = optional_json(d.ratio(), number_json);
  j["interval_ratio"] = d.low() && d.high()
                            ? Json::array({number_json(*d.low()), number_json(*d.high())})
                            : Json(nullptr);
  j["sensor_noise_ratio"] = optional_json(d.sensor_noise, number_json);
  j["p"] = d.log_ratio && d.log_ratio->half ? number_json(d.p) : Json(nullptr);
  j["verdict"] = to_string(d.verdict);
  j["reason"] = d.reason;
  return j;
}

Json gate_json(const ComparisonReport& report, const JudgedGate& judged) {
  Json j = Json::object();
  j["condition"] = judged.gate.text;
  j["threshold_ratio"] = number_json(judged.gate.threshold);
  j["outcome"] = to_string(judged.outcome);
  j["text"] = gate_text(report, judged);
  return j;
}

Json costs_json(const ComparisonReport& report) {
  const auto& factors = report.costs;
  if (!factors.any()) return nullptr;
  const SideCost before = cost_of(factors, report.comparison.energy.before);
  const SideCost after = cost_of(factors, report.comparison.energy.after);
  const auto exact = [](double value) { return decimal(fixed_decimal(value, 9)); };
  Json j = Json::object();
  j["pue"] = optional_json(factors.pue, number_json);
  j["price_per_kilowatt_hour"] =
      factors.price ? number_json(factors.price->per_kilowatt_hour) : Json(nullptr);
  j["currency"] = factors.price ? text_json(factors.price->currency) : Json(nullptr);
  j["carbon_grams_per_kilowatt_hour"] = optional_json(factors.grams, number_json);
  j["before_money"] = optional_json(before.money, exact);
  j["after_money"] = optional_json(after.money, exact);
  j["before_carbon_grams"] = optional_json(before.carbon_grams, exact);
  j["after_carbon_grams"] = optional_json(after.carbon_grams, exact);
  j["scope"] = scope_of_costs();
  return j;
}

}  // namespace

std::string comparison_to_json(const ComparisonReport& report) {
  const auto& c = report.comparison;
  Json j = Json::object();
  j["schema"] = kSchema;
  j["before"] = {{"title", text_json(report.before)}, {"runs", c.before}};
  j["after"] = {{"title", text_json(report.after)}, {"runs", c.after}};
  j["paired"] = report.options.paired;
  j["units_before"] = c.units_before;
  j["units_after"] = c.units_after;
  j["given_spread_ratio"] = optional_json(report.options.spread, number_json);
  j["same_within_ratio"] = number_json(report.options.same_within);
  j["unit_window"] = text_json(report.per);
  j["of"] = !report.per.empty() ? "window" : c.is_command ? "command" : "machine";
  j["domains"] = c.domains;
  j["excluded"] = c.excluded;
  j["energy"] = difference_json(c.energy, "joules");
  j["time"] = difference_json(c.time, "seconds");
  j["power"] = difference_json(c.power, "watts");
  j["by"] = to_string(report.by);
  j["rows"] = Json::array();
  for (const auto& row : c.rows) j["rows"].push_back(difference_json(row, "joules"));
  j["unmatched"] = Json::array();
  for (const auto& each : c.unmatched) {
    j["unmatched"].push_back({{"side", each.before ? "before" : "after"},
                              {"name", each.row.name},
                              {"detail", text_json(each.row.detail)},
                              {"count", each.row.count},
                              {"energy_joules", optional_json(each.row.energy.value, number_json)},
                              {"reason", text_json(each.row.energy.reason)}});
  }
  j["conditions"] = Json::array();
  for (const auto& condition : c.conditions) {
    j["conditions"].push_back(
        {{"code", condition.code}, {"text", condition.text}, {"blocks", condition.blocks}});
  }
  j["costs"] = costs_json(report);
  j["self_test"] = report.self_test;
  j["gates"] = Json::array();
  for (const auto& judged : report.gates) j["gates"].push_back(gate_json(report, judged));
  return write_json(j) + "\n";
}

std::string comparison_to_benchmark(const ComparisonReport& report) {
  Json list = Json::array();
  const auto add = [&](const analysis::Difference& d, const std::string& name, const char* unit) {
    if (!d.after) return;
    Json j = Json::object();
    j["name"] = name;
    j["unit"] = unit;
    j["value"] = number_json(*d.after);
    // The action draws it; the half-width of the change's interval, in the unit.
    if (d.log_ratio && d.log_ratio->half) {
      j["range"] = "± " + fixed_decimal(*d.after * std::expm1(*d.log_ratio->half));
    }
    j["extra"] = change_text(d.ratio()) + " (95 %: " + interval_text(d) + "), " +
                 std::string(to_string(d.verdict));
    list.push_back(std::move(j));
  };
  add(report.comparison.energy, "energy", "J");
  add(report.comparison.time, "time", "s");
  for (const auto& row : report.comparison.rows) {
    add(row, row.detail.empty() ? row.name : row.name + " " + row.detail, "J");
  }
  return write_json(list) + "\n";
}

}  // namespace jouleprof::report
