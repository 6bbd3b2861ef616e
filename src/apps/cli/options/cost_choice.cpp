#include "apps/cli/options/cost_choice.h"

#include <fmt/format.h>

#include "apps/cli/options/option_table.h"
#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"
#include "importers/wall/wall_log.h"

namespace jouleprof::cli {
namespace {

constexpr std::size_t kLargestFile = 64 << 20;

}  // namespace

void CostChoice::declare(CLI::App& app) {
  add(app, "--price", price);
  add(app, "--carbon", carbon);
  add(app, "--pue", pue);
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
      if (!text) {
        return fail(text.error().code,
                    fmt::format("--carbon {}: neither a number of grams for a kilowatt-hour nor a "
                                "file: {}",
                                carbon, text.error().message));
      }
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

namespace {

constexpr std::size_t kLargestLog = std::size_t{1} << 30;

Result<model::WallLog> read_log(const std::string& file, const std::string& column) {
  const auto source = importers::read_source(file, kLargestLog);
  if (!source) return forward_error(source);
  return importers::read_wall_log(source->text, file, column);
}

}  // namespace

void WallChoice::declare(CLI::App& app) {
  auto* wall = add(app, "--wall", files)->allow_extra_args(false);
  add(app, "--wall-column", column)->needs(wall);
}

Result<std::optional<model::WallLog>> WallChoice::of_run() const {
  if (files.empty()) return std::optional<model::WallLog>();
  if (files.size() > 1) {
    return fail(Errc::kInvalidArgument,
                "a recording has one --wall; several are of a job's machines");
  }
  auto log = read_log(files.front(), column);
  if (!log) return forward_error(log);
  return std::optional(std::move(*log));
}

Result<std::vector<std::pair<std::string, model::WallLog>>> WallChoice::of_job() const {
  std::vector<std::pair<std::string, model::WallLog>> logs;
  for (const auto& word : files) {
    const auto equals = word.find('=');
    if (equals == word.npos || equals == 0) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--wall {}: of a job, name the machine, such as --wall node1={}",
                              word, word));
    }
    auto log = read_log(word.substr(equals + 1), column);
    if (!log) return forward_error(log);
    logs.emplace_back(word.substr(0, equals), std::move(*log));
  }
  return logs;
}

}  // namespace jouleprof::cli
