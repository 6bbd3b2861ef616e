#include "apps/cli/options/cost_choice.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

constexpr std::size_t kLargestFile = 64 << 20;

}  // namespace

void CostChoice::declare(CLI::App& app) {
  app.add_option("--price", price, "");
  app.add_option("--carbon", carbon, "");
  app.add_option("--pue", pue, "");
}

Result<report::CostFactors> CostChoice::factors() const {
  report::CostFactors factors;
  if (!price.empty()) {
    auto parsed = report::parse_price(price);
    if (!parsed) return forward_error(parsed);
    factors.price = std::move(*parsed);
  }
  if (!carbon.empty()) {
    std::string_view number = trim(carbon);
    if (number.ends_with("g/kWh")) number = trim(number.substr(0, number.size() - 5));
    if (const auto grams = parse_number(number)) {
      if (*grams < 0) return fail(Errc::kInvalidArgument, "--carbon must not be below 0");
      factors.grams = *grams;
    } else {
      const auto text = read_file(carbon, kLargestFile);
      if (!text) return forward_error(text);
      auto series = report::parse_carbon_series(*text, carbon);
      if (!series) return forward_error(series);
      factors.series = std::move(*series);
    }
  }
  if (!pue.empty()) {
    const auto ratio = parse_number(pue);
    if (!ratio || *ratio < 1 || *ratio > 10) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--pue {}: give the power usage effectiveness, from 1 to 10, such as "
                              "1.2",
                              pue));
    }
    if (!factors.any()) return fail(Errc::kInvalidArgument, "--pue needs --price or --carbon");
    factors.pue = *ratio;
  }
  return factors;
}

}  // namespace jouleprof::cli
