#include "report/costs/cost_lines.h"

#include <fmt/format.h>

#include <cmath>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

// Amounts of money and grams: four significant digits, without an exponent.
std::string amount(double value) {
  for (int decimals = 2; decimals < 9; ++decimals) {
    if (value == 0 || value * std::pow(10, decimals) >= 1000) {
      return fixed_decimal(value, decimals);
    }
  }
  return fixed_decimal(value, 9);
}

std::string carbon_source(const Costs& costs) {
  const auto& series = costs.factors.series;
  if (!series) return "--carbon";
  std::string text = series->file;
  if (!series->zone.empty()) text += ", zone " + series->zone;
  if (!series->column.empty()) text += ", " + series->column;
  text += fmt::format(", mean over {} of its times", costs.steps);
  if (costs.estimated_steps > 0) {
    text += fmt::format(", of which the source estimated {}", costs.estimated_steps);
  }
  return text;
}

}  // namespace

std::vector<CostLine> cost_lines(const Costs& costs, bool ascii) {
  std::vector<CostLine> lines;
  const auto& factors = costs.factors;
  const std::string interval = interval_text(costs.energy, costs.error, costs.upper_error, ascii);
  const std::string energy =
      energy_text(costs.energy) + (costs.is_command ? " of the command" : " of all devices");
  const std::string pue =
      factors.pue ? fmt::format(" x PUE {:g} (--pue)", *factors.pue) : std::string();
  if (costs.money) {
    const auto& price = *factors.price;
    const std::string unit = price.currency.empty() ? "" : " " + price.currency;
    lines.push_back(
        {"cost", fmt::format("{}{} {}: {}{} x {:g}{}/kWh (--price)", amount(*costs.money), unit,
                             interval, energy, pue, price.per_kilowatt_hour, unit)});
  }
  if (costs.carbon_grams) {
    lines.push_back({"carbon", fmt::format("{} g CO2e {}: {}{} x {:.4g} g/kWh ({})",
                                           amount(*costs.carbon_grams), interval, energy, pue,
                                           costs.mean_grams.value_or(0), carbon_source(costs))});
  }
  lines.push_back(
      {"scope", fmt::format("{}: {}", fmt::join(costs.domains, " + "), scope_of_costs())});
  return lines;
}

}  // namespace jouleprof::report
