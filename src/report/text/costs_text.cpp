#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"
#include "report/costs.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/text/table.h"

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

class Lines {
 public:
  explicit Lines(const TextOptions& text) : text_(text) {}
  void add(const std::string& label, const std::string& words) {
    Table table({""});
    table.add_text({label, Style::kDim}, {printable(words, text_.ascii)}, 4);
    const auto lines =
        table.lines(static_cast<std::size_t>(std::max(text_.width, 60)), text_.colour);
    for (std::size_t i = 1; i < lines.size(); ++i) all_ += lines[i] + '\n';
  }
  std::string all() && { return std::move(all_); }

 private:
  const TextOptions& text_;
  std::string all_;
};

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

std::string costs_to_text(const Costs& costs, const TextOptions& text) {
  Lines lines(text);
  const auto& factors = costs.factors;
  const std::string sign = text.ascii ? "+-" : "±";
  const std::string energy = energy_text(costs.energy);
  const std::string pue =
      factors.pue ? fmt::format(" x PUE {:g} (--pue)", *factors.pue) : std::string();
  if (costs.money) {
    const auto& price = *factors.price;
    const std::string unit = price.currency.empty() ? "" : " " + price.currency;
    lines.add("cost", fmt::format("{}{} {}{}: {}{} x {:g}{}/kWh (--price)", amount(*costs.money),
                                  unit, sign, percent_text(costs.error), energy, pue,
                                  price.per_kilowatt_hour, unit));
  }
  if (costs.carbon_grams) {
    lines.add("carbon",
              fmt::format("{} g CO2e {}{}: {}{} x {:.4g} g/kWh ({})", amount(*costs.carbon_grams),
                          sign, percent_text(costs.error), energy, pue,
                          costs.mean_grams.value_or(0), carbon_source(costs)));
  }
  lines.add("scope", fmt::format("{}: {}", fmt::join(costs.domains, " + "), scope_of_costs()));
  return std::move(lines).all();
}

}  // namespace jouleprof::report
