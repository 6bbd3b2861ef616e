#include "report/costs/costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

const CarbonSeries::Step* step_at(const CarbonSeries& series, RealTime t) {
  const auto after = std::upper_bound(
      series.steps.begin(), series.steps.end(), t,
      [](RealTime time, const CarbonSeries::Step& step) { return time < step.begin; });
  if (after == series.steps.begin()) return nullptr;
  const auto& step = *(after - 1);
  return t < step.begin + series.length ? &step : nullptr;
}

// The place of a domain in the recording's list.
std::optional<std::size_t> place_of(const model::Recording& recording, model::DomainId id) {
  for (std::size_t i = 0; i < recording.domains.size(); ++i) {
    if (recording.domains[i].id == id) return i;
  }
  return std::nullopt;
}

class SeriesCost {
 public:
  SeriesCost(const analysis::Run& run, const model::Profile& profile, const Total& total,
             const CarbonSeries& series)
      : run_(run), profile_(profile), total_(total), series_(series) {}

  Result<void> add_to(Costs& costs) {
    if (profile_.start_time == RealTime{} || !profile_.has_span()) {
      return fail(Errc::kUnavailable,
                  "the recording has no wall-clock time, so that a carbon intensity by time cannot "
                  "be applied; give one value: --carbon 230");
    }
    double grams = 0;
    HostTime at = profile_.begin;
    while (at < profile_.end) {
      const RealTime real = profile_.start_time + (at - profile_.begin);
      const auto* step = step_at(series_, real);
      if (step == nullptr) {
        return fail(Errc::kUnavailable,
                    fmt::format("{} has no carbon intensity for {}; give a file that covers the "
                                "run, or one value: --carbon 230",
                                series_.file, utc_seconds_text(real)));
      }
      const HostTime end = std::min(profile_.end, at + (step->begin + series_.length - real));
      const auto joules = joules_between(at, end);
      if (!joules) return forward_error(joules);
      grams += *joules * step->grams;
      ++costs.steps;
      if (step->estimated) ++costs.estimated_steps;
      at = end;
    }
    const double joules = total_.energy->energy.joules();
    if (joules > 0) {
      costs.mean_grams = grams / joules;
      grams *= costs.energy.joules() / joules;
    }
    costs.carbon_grams = grams / kJoulesPerKilowattHour * costs.factors.pue.value_or(1);
    return {};
  }

 private:
  Result<double> joules_between(HostTime begin, HostTime end) const {
    Energy sum;
    for (const auto* domain : total_.counted) {
      const auto place = place_of(run_.recording(), domain->domain.id);
      if (!place) return fail(Errc::kInternal, "a domain is missing");
      const auto energy = run_.energy(*place, begin, end);
      if (!energy) return forward_error(energy);
      sum += energy->energy;
    }
    return sum.joules();
  }

  const analysis::Run& run_;
  const model::Profile& profile_;
  const Total& total_;
  const CarbonSeries& series_;
};

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

Result<Costs> costs_of(const analysis::Run& run, const analysis::Part& part,
                       const CostFactors& factors, bool whole_machine) {
  const auto& profile = run.profile(part);
  if (!profile) return forward_error(profile);
  const Total total = total_of(*profile);
  const auto quote = quoted(total, whole_machine);
  if (!quote) {
    return fail(Errc::kUnavailable, "no energy is known, so that there are no costs");
  }
  Costs costs;
  costs.factors = factors;
  costs.energy = quote->energy;
  costs.is_command = quote->is_command;
  costs.error = quote->error;
  costs.upper_error = quote->upper_error;
  const double joules = costs.energy.joules();
  const auto labels = labels_of(*profile);
  for (const auto* domain : total.counted) {
    costs.domains.push_back(labels.at(static_cast<std::size_t>(domain - profile->domains.data())));
  }
  const double site = joules / kJoulesPerKilowattHour * factors.pue.value_or(1);
  if (factors.price) costs.money = site * factors.price->per_kilowatt_hour;
  if (factors.grams) {
    costs.carbon_grams = site * *factors.grams;
    costs.mean_grams = factors.grams;
  }
  if (factors.series) {
    if (auto added = SeriesCost(run, *profile, total, *factors.series).add_to(costs); !added) {
      return forward_error(added);
    }
  }
  return costs;
}

std::string_view scope_of_costs() {
  return "of the domains in the total; not of fans, network, storage and power supplies, except "
         "where the PUE has them";
}

}  // namespace jouleprof::report
