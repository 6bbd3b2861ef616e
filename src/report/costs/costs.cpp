#include "report/costs/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

const CarbonSeries::Step* step_at(const CarbonSeries& series, RealTime t) {
  const auto after = std::ranges::upper_bound(series.steps, t, {}, &CarbonSeries::Step::begin);
  if (after == series.steps.begin()) return nullptr;
  const auto& step = *(after - 1);
  return t < step.begin + series.length ? &step : nullptr;
}

// Each step's energy by its own intensity.
Result<void> add_series(const analysis::Run& run, const model::Profile& profile, const Total& total,
                        const CarbonSeries& series, Costs& costs) {
  if (!total.energy) {
    return fail(Errc::kUnavailable,
                "another tool reported the energy of whole windows, not its course, so that a "
                "carbon intensity by time cannot be applied; give one value: --carbon 230");
  }
  if (profile.start_time == RealTime{} || !profile.has_span()) {
    return fail(Errc::kUnavailable,
                "the recording has no wall-clock time, so that a carbon intensity by time cannot "
                "be applied; give one value: --carbon 230");
  }
  double grams = 0, joules = 0;  // of the time with readings
  HostTime at = profile.begin;
  while (at < profile.end) {
    const RealTime real = profile.start_time + (at - profile.begin);
    const auto* step = step_at(series, real);
    if (step == nullptr) {
      return fail(Errc::kUnavailable,
                  fmt::format("{} has no carbon intensity for {}; give a file that covers the "
                              "run, or one value: --carbon 230",
                              series.file, utc_seconds_text(real)));
    }
    const HostTime end = std::min(profile.end, at + (step->begin + series.length - real));
    const auto energy = energy_between(run, profile, total, at, end);
    if (!energy) return forward_error(energy);
    grams += energy->joules() * step->grams;
    joules += energy->joules();
    ++costs.steps;
    if (step->estimated) ++costs.estimated_steps;
    at = end;
  }
  if (joules > 0) {
    costs.mean_grams = grams / joules;
    grams *= costs.energy.joules() / joules;
  }
  costs.carbon_grams = costs.factors.kilowatt_hours(grams);
  return {};
}

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

Result<Price> parse_price(std::string_view text) {
  std::string_view rest = trim(text);
  if (rest.ends_with("/kWh")) rest = trim(rest.substr(0, rest.size() - 4));
  const auto first = rest.find_first_of("0123456789.");
  const auto last = rest.find_last_of("0123456789.");
  const auto invalid =
      fail(Errc::kInvalidArgument,
           fmt::format("--price {}: give the price of a kilowatt-hour, such as 0.30/kWh or '0.30 "
                       "EUR/kWh'",
                       text));
  if (first == std::string_view::npos) return invalid;
  const auto number = parse_number(rest.substr(first, last + 1 - first));
  const auto before = trim(rest.substr(0, first));
  const auto after = trim(rest.substr(last + 1));
  if (!number || *number < 0 || (!before.empty() && !after.empty())) return invalid;
  if (before == "-" || before == "+" || before.size() > 8 || after.size() > 8) return invalid;
  const std::string currency(before.empty() ? after : before);
  if (currency.find('/') != std::string::npos) return invalid;  // another unit, such as 1/MWh
  return Price{*number, currency};
}

Result<Energy> energy_between(const analysis::Run& run, const model::Profile& profile,
                              const Total& total, HostTime from, HostTime to) {
  Energy sum;
  for (const auto* domain : total.counted) {
    const auto place = static_cast<std::size_t>(domain - profile.domains.data());
    const auto energy = run.energy(place, from, to);
    if (!energy) return forward_error(energy);
    sum += energy->energy;
  }
  return sum;
}

std::optional<double> CostFactors::money(std::optional<double> joules) const {
  if (!price || !joules) return std::nullopt;
  return kilowatt_hours(*joules) * price->per_kilowatt_hour;
}

std::optional<double> CostFactors::carbon_grams(std::optional<double> joules) const {
  if (!grams || !joules) return std::nullopt;
  return kilowatt_hours(*joules) * *grams;
}

Costs costs_of(const CostFactors& factors, const Quoted& quote) {
  Costs costs;
  costs.factors = factors;
  costs.energy = quote.energy;
  costs.is_command = quote.is_command;
  costs.error = quote.error;
  costs.upper_error = quote.upper_error;
  costs.has_interval = quote.has_interval;
  costs.is_partial = quote.is_partial;
  costs.money = factors.money(costs.energy.joules());
  costs.carbon_grams = factors.carbon_grams(costs.energy.joules());
  costs.mean_grams = factors.grams;
  return costs;
}

Result<Costs> costs_of(const analysis::Run& run, const analysis::Part& part,
                       const CostFactors& factors, bool whole_machine) {
  const auto& profile = run.profile(part);
  if (!profile) return forward_error(profile);
  const Total total = total_of(*profile);
  const auto quote = quoted(total, whole_machine);
  if (!quote) {
    return fail(Errc::kUnavailable, "no energy is known, so that there are no costs");
  }
  Costs costs = costs_of(factors, *quote);
  for (const auto* domain : total.reported ? total.reporting : total.summed) {
    costs.domains.push_back(label_of(*profile, *domain));
  }
  if (factors.series) {
    if (auto added = add_series(run, *profile, total, *factors.series, costs); !added) {
      return forward_error(added);
    }
  }
  return costs;
}

std::string_view scope_of_costs() {
  return "of the domains in the total; not of fans, network, storage and power supplies, except "
         "where the PUE has them";
}

namespace {

// "2026-11-22 02:00:00", "2026-11-22T02:00:00Z", without seconds as well; in UTC.
std::optional<RealTime> parse_utc(std::string_view text) {
  const std::string word(trim(text));
  std::tm time{};
  int used = 0;
  char between = 0;
  if (std::sscanf(word.c_str(), "%4d-%2d-%2d%c%2d:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &between, &time.tm_hour, &time.tm_min, &used) != 6 ||
      (between != ' ' && between != 'T')) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(word).substr(static_cast<std::size_t>(used));
  int more = 0;
  if (std::sscanf(std::string(rest).c_str(), ":%2d%n", &time.tm_sec, &more) == 1) {
    rest.remove_prefix(static_cast<std::size_t>(more));
  }
  if (rest.starts_with(".000")) rest.remove_prefix(4);
  if (!rest.empty() && rest != "Z" && rest != "+00:00") return std::nullopt;
  if (time.tm_mon < 1 || time.tm_mon > 12 || time.tm_mday < 1 || time.tm_mday > 31 ||
      time.tm_hour > 23 || time.tm_min > 59 || time.tm_sec > 60) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return RealTime{std::chrono::seconds{::timegm(&time)}};
}

std::optional<std::size_t> column_with(const std::vector<std::string>& head,
                                       std::initializer_list<std::string_view> words) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto has = [&](std::string_view word) { return head[i].find(word) != std::string::npos; };
    if (std::ranges::all_of(words, has)) return i;
  }
  return std::nullopt;
}

bool is_true(std::string_view word) { return word == "true" || word == "True" || word == "1"; }

}  // namespace

Result<CarbonSeries> parse_carbon_series(std::string_view text, std::string file) {
  CarbonSeries series;
  series.file = std::move(file);
  const auto damaged = [&](std::size_t line, const std::string& what) {
    return fail(Errc::kCorrupt, fmt::format("{}:{}: {}", series.file, line, what));
  };
  const auto lines = split(text, '\n');
  const auto head = lines.empty() ? Result<std::vector<std::string>>{} : split_csv(trim(lines[0]));
  if (!head) return damaged(1, head.error().message);
  const auto time = column_with(*head, {"Datetime"});
  auto grams = column_with(*head, {"arbon intensity", "ife cycle"});
  series.column = "life cycle";
  if (!grams) {
    grams = column_with(*head, {"arbon intensity"});
    series.column = grams && (*head)[*grams].find("direct") != std::string::npos ? "direct" : "";
  }
  if (!time || !grams) {
    return damaged(1,
                   "the header has no columns 'Datetime (UTC)' and 'Carbon intensity ...', as "
                   "Electricity Maps exports them");
  }
  const auto zone = column_with(*head, {"Zone"});
  const auto estimated = column_with(*head, {"stimated"});
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto fields = split_csv(trim(lines[i]));
    if (!fields) return damaged(i + 1, fields.error().message);
    if (fields->size() <= std::max(*time, *grams)) return damaged(i + 1, "fields are missing");
    const auto begin = parse_utc((*fields)[*time]);
    if (!begin) return damaged(i + 1, fmt::format("'{}' is not a time in UTC", (*fields)[*time]));
    if (trim((*fields)[*grams]).empty()) continue;  // no value for this time
    const auto value = parse_number(trim((*fields)[*grams]));
    if (!value || *value < 0) {
      return damaged(i + 1, fmt::format("'{}' is not a carbon intensity", (*fields)[*grams]));
    }
    if (zone && *zone < fields->size()) {
      if (!series.zone.empty() && series.zone != (*fields)[*zone]) {
        return damaged(i + 1, "the file has several zones; give a file of one");
      }
      series.zone = (*fields)[*zone];
    }
    const bool is_estimated =
        estimated && *estimated < fields->size() && is_true((*fields)[*estimated]);
    series.steps.push_back({*begin, *value, is_estimated});
  }
  if (series.steps.empty()) return damaged(1, "the file has no carbon intensity");
  std::ranges::sort(series.steps, [](const auto& a, const auto& b) { return a.begin < b.begin; });
  // Of a single row: an hour. A longer pause between rows is a missing value.
  std::optional<Duration> shortest;
  for (std::size_t i = 1; i < series.steps.size(); ++i) {
    const Duration length = series.steps[i].begin - series.steps[i - 1].begin;
    if (length <= Duration{}) return damaged(1, "two rows have the same time");
    shortest = std::min(shortest.value_or(length), length);
  }
  series.length = shortest.value_or(std::chrono::hours{1});
  return series;
}

std::optional<double> Costs::shown_money() const {
  if (!is_bound() || !money) return money;
  return factors.money(shown().joules());
}

std::optional<double> Costs::shown_grams() const {
  if (!is_bound() || !carbon_grams || !mean_grams) return carbon_grams;
  return factors.kilowatt_hours(shown().joules()) * *mean_grams;
}

void add_costs(PerUnit& per, const Costs& costs) {
  const auto of_one = [&per](std::optional<double> amount) {
    return amount ? std::optional(*amount / per.unit.count) : std::nullopt;
  };
  if (costs.money) per.currency = costs.factors.price->currency;
  per.money = of_one(costs.money);
  per.carbon_grams = of_one(costs.carbon_grams);
  per.shown_money = of_one(costs.shown_money());
  per.shown_grams = of_one(costs.shown_grams());
}

std::string amounts_text(std::optional<double> money, const std::string& currency,
                         std::optional<double> carbon_grams) {
  std::string text;
  if (money) text = amount(*money) + (currency.empty() ? "" : " " + currency);
  if (carbon_grams) {
    text += fmt::format("{}{} g CO2e", text.empty() ? "" : ", ", amount(*carbon_grams));
  }
  return text;
}

std::vector<CostLine> cost_lines(const Costs& costs, bool ascii, bool brief) {
  std::vector<CostLine> lines;
  const auto& factors = costs.factors;
  const bool is_bound = costs.is_bound();
  const char* const most = is_bound ? "at most " : costs.is_partial ? "at least " : "";
  const std::string interval =
      is_bound || (brief && !costs.has_interval) ? ""
      : !costs.has_interval                      ? fmt::format(" ({})", kNoInterval)
      : costs.is_partial ? ' ' + lower_interval_text(costs.energy.joules(), costs.error.joules())
                         : ' ' + interval_text(costs.energy, costs.error, costs.upper_error, ascii);
  const std::string energy =
      most + energy_text(costs.shown()) +
      (!costs.has_interval ? (brief ? " reported" : " reported by another tool")
       : costs.is_command  ? " of the command"
                           : " of all devices");
  const auto from = [&](std::string_view option) {
    return brief ? std::string() : fmt::format(" ({})", option);
  };
  const std::string pue =
      factors.pue ? fmt::format(" x PUE {:g}{}", *factors.pue, from("--pue")) : std::string();
  if (costs.money) {
    const auto& price = *factors.price;
    const std::string unit = price.currency.empty() ? "" : " " + price.currency;
    lines.push_back({"cost", fmt::format("{}{}{}{}: {}{} x {:g}{}/kWh{}", most,
                                         amount(*costs.shown_money()), unit, interval, energy, pue,
                                         price.per_kilowatt_hour, unit, from("--price"))});
  }
  if (costs.carbon_grams) {
    lines.push_back(
        {"carbon",
         fmt::format(
             "{}{} g CO2e{}: {}{} x {:.4g} g/kWh{}", most, amount(*costs.shown_grams()), interval,
             energy, pue, costs.mean_grams.value_or(0),
             factors.series ? fmt::format(" ({})", carbon_source(costs)) : from("--carbon"))});
  }
  if (brief) return lines;
  lines.push_back(
      {"scope", fmt::format("{}: {}", fmt::join(costs.domains, " + "), scope_of_costs())});
  return lines;
}

}  // namespace jouleprof::report
