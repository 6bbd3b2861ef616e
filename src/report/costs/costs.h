// Money and carbon of an energy. Computed for an output only; recordings hold energy alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::report {

inline constexpr double kJoulesPerKilowattHour = 3.6e6;

struct Quoted;

struct Price {
  double per_kilowatt_hour = 0;
  std::string currency;  // as it was given; may be empty
};

// Grams of CO2 equivalent for a kilowatt-hour, by intervals of equal length, in the order of time.
struct CarbonSeries {
  struct Step {
    RealTime begin{};
    double grams = 0;
    bool estimated = false;  // by the source
  };
  std::string zone;
  std::string column;  // "Life cycle" or "direct"
  std::string file;
  Duration length{};  // of a step
  std::vector<Step> steps;
};

// Given by the user; there is no default.
struct CostFactors {
  std::optional<Price> price;
  std::optional<double> grams;  // for a kilowatt-hour, at all times
  std::optional<CarbonSeries> series;
  // Power usage effectiveness: the energy of the whole site for one joule of its machines.
  std::optional<double> pue;

  bool any() const { return price || grams || series; }
  // The energy of the whole site, for that of its machines.
  double kilowatt_hours(double joules) const {
    return joules / kJoulesPerKilowattHour * pue.value_or(1);
  }
  // By the price, and by an intensity that holds at all times; absent where it was not given, or
  // where the energy is.
  std::optional<double> money(std::optional<double> joules) const;
  std::optional<double> carbon_grams(std::optional<double> joules) const;
};

// "0.30/kWh", "0.30 EUR/kWh", "$0.30/kWh", "0.30". Errors: invalid_argument.
Result<Price> parse_price(std::string_view text);

// The CSV files that Electricity Maps exports: one row an interval. The intensity is that of the
// life cycle where the file has it. Errors: corrupt, with the line.
Result<CarbonSeries> parse_carbon_series(std::string_view text, std::string file);

struct Costs {
  CostFactors factors;
  Energy energy;                     // measured or estimated, without the PUE
  bool is_command = false;           // of the command; else of whole machines
  Energy error;                      // of its 95 % interval, downwards; factors have none here
  Energy upper_error;                // upwards
  bool has_interval = true;          // as Quoted's
  bool is_partial = false;           // likewise: all of this is "at least"
  std::vector<std::string> domains;  // that it is of
  std::optional<double> money;
  std::optional<double> carbon_grams;
  std::optional<double> mean_grams;  // for a kilowatt-hour, over the run
  std::size_t steps = 0;             // of the series that were used
  std::size_t estimated_steps = 0;   // of them, by the source

  // The energy cannot be distinguished from nothing: it and its costs are "at most" so much.
  bool is_bound() const { return !is_partial && energy <= error; }
  // What the text shows: the energy, or its upper bound.
  Energy shown() const { return is_bound() ? energy + upper_error : energy; }
  std::optional<double> shown_money() const;
  std::optional<double> shown_grams() const;
};

// Without a series, and without domains.
Costs costs_of(const CostFactors& factors, const Quoted& quote);

// The costs of what a run, or a part of it, quotes (report/total.h). With a series, the energy in
// each interval is multiplied by that interval's intensity; the command's is spread over time as
// the total's. Errors: as Run::profile's; unavailable where there is no energy, no time, or the
// series has no value for a time of the run.
Result<Costs> costs_of(const analysis::Run& run, const analysis::Part& part,
                       const CostFactors& factors, bool whole_machine = false);

// What the devices of a profile's total took between two times. Errors: as Run::energy's.
struct Total;
Result<Energy> energy_between(const analysis::Run& run, const model::Profile& profile,
                              const Total& total, HostTime from, HostTime to);

// Adds to one unit its part of the costs of all.
struct PerUnit;
void add_costs(PerUnit& per, const Costs& costs);

// "0.30 EUR", "12.1 g CO2e", of what is known.
std::string amounts_text(std::optional<double> money, const std::string& currency,
                         std::optional<double> carbon_grams);

// What the figures do not include, for every output.
std::string_view scope_of_costs();

// --- Money and carbon as sentences, for text and the page ---

struct CostLine {
  std::string label;  // "cost", "carbon" or "scope"
  std::string words;  // with the factors and their sources; not escaped
};

// `brief`: without the scope, the options that gave the factors, and what the headline above says.
std::vector<CostLine> cost_lines(const Costs& costs, bool ascii, bool brief = false);

}  // namespace jouleprof::report
