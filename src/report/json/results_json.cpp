#include <cmath>

#include "base/json/json.h"
#include "report/format/format.h"
#include "report/json/records.h"
#include "report/json/values.h"
#include "report/quantity.h"
#include "report/results/bench.h"
#include "report/results/comparison.h"
#include "report/results/recommendation.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using analysis::BenchEnergy;

constexpr const char* kBenchSchema = "jouleprof.bench/1";

// Nine decimals: one token may take less than a microjoule, and cost less than a millionth.
Json small_json(double value) { return decimal(fixed_decimal(value, 9)); }

Json per_json(const std::optional<JoulesPer>& j) {
  if (!j) return nullptr;
  Json out = Json::object();
  out["energy_joules"] = small_json(j->joules);
  out["interval_joules"] = Json::array({small_json(j->low()), small_json(j->high())});
  out["repeatability_joules"] = small_json(j->repeatability);
  out["provenance"] = to_string(j->provenance);
  return out;
}

Json row_json(const BenchRow& row) {
  Json j = Json::object();
  j["phase"] = text_json(row.phase);
  j["unit"] = row.unit;
  j["count"] = number_json(row.count);
  j["device"] = per_json(row.device);
  j["total"] = per_json(row.total);
  j["rest"] = per_json(row.rest);
  j["held"] = per_json(row.held);
  j["active"] = per_json(row.active);
  return j;
}

Json gauge_json(const std::optional<analysis::GaugeSummary>& g) {
  if (!g) return nullptr;
  return {
      {"mean", number_json(g->mean)}, {"low", number_json(g->low)}, {"high", number_json(g->high)}};
}

Json energy_json(const model::BenchCase& bench, const BenchEnergy& energy) {
  Json j = Json::object();
  // The same object as that of `report --json` for this part of the run.
  j["profile"] = Json::parse(to_json(energy.profile));
  j["per"] = list_json(bench_rows(bench, energy), row_json);
  j["sm_clock_hertz"] = gauge_json(energy.sm_clock);
  j["temperature_celsius"] = gauge_json(energy.temperature);
  j["clock_limits"] = optional_json(energy.limits, [](const auto& limits) {
    return list_json(limits, [](const auto& limit) -> Json {
      return {{"name", limit.name}, {"share_ratio", number_json(limit.share)}};
    });
  });
  return j;
}

constexpr const char* kComparisonSchema = "jouleprof.comparison/2";

Json interval_json(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high ? Json::array({number_json(*low), number_json(*high)}) : Json(nullptr);
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
  const auto& before = report.comparison.energy.before;
  const auto& after = report.comparison.energy.after;
  Json j = Json::object();
  j["pue"] = optional_json(factors.pue, number_json);
  j["price_per_kilowatt_hour"] =
      factors.price ? number_json(factors.price->per_kilowatt_hour) : Json(nullptr);
  j["currency"] = factors.price ? text_json(factors.price->currency) : Json(nullptr);
  j["carbon_grams_per_kilowatt_hour"] = optional_json(factors.grams, number_json);
  j["before_money"] = optional_json(factors.money(before), small_json);
  j["after_money"] = optional_json(factors.money(after), small_json);
  j["before_carbon_grams"] = optional_json(factors.carbon_grams(before), small_json);
  j["after_carbon_grams"] = optional_json(factors.carbon_grams(after), small_json);
  j["scope"] = scope_of_costs();
  return j;
}

constexpr const char* kRecommendationSchema = "jouleprof.recommendation/1";

Json interval_json(const std::optional<analysis::Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({number_json(interval->low), number_json(interval->high)});
}

}  // namespace

std::string bench_to_json(const model::BenchDocument& document,
                          const std::vector<BenchResult>& results) {
  Json j = Json::object();
  j["schema"] = kBenchSchema;
  j["versions"] = document.versions;
  j["cases"] = list_json(results, [](const BenchResult& result) {
    Json entry = Json::parse(result.bench.document);
    entry["energy"] = result.energy ? energy_json(result.bench, *result.energy) : Json(nullptr);
    entry["energy_reason"] = result.energy ? Json(nullptr) : Json(result.energy.error().message);
    return entry;
  });
  return write_json(j) + '\n';
}

void columns(const analysis::Difference& d, const std::string& unit, Columns& column) {
  constexpr std::string_view kNull = "a run has no figure";
  column("name", d.name, "the row's name");
  column("detail", d.detail,
         "a row's shapes, or grid and block; the devices of windows that do not measure all",
         "it has none");
  column("before_" + unit, d.before, "geometric mean over the runs", kNull);
  column("after_" + unit, d.after, "geometric mean over the runs", kNull);
  column("change_ratio", d.ratio(), "the change",
         "a run has no figure, or a condition prevents verdicts");
  column(
      "interval_ratio", [&] { return interval_json(d.low(), d.high()); },
      "its 95 % interval, two numbers",
      "there is no change, or the spread between runs is not known");
  column("sensor_noise_ratio", d.sensor_noise,
         "half of the 95 % interval that the sensors' repeatability alone gives", kNull);
  column("difference_at_most_joules", d.at_most,
         "the means differ by so much at most, with 95 % confidence, where energies are not above "
         "zero",
         "`reason` is neither `not_positive` nor `undivided`");
  column("p", d.log_ratio && d.log_ratio->half ? std::optional(d.p) : std::nullopt,
         "of \"no change\"; of rows, adjusted by Holm", "there is no interval");
  column("verdict", to_string(d.verdict), "`lower`, `higher`, `same` or `inconclusive`");
  column("reason", d.reason,
         "`interval_below_zero`, `interval_above_zero`, `within_threshold`, `interval_too_wide`, "
         "`one_of_many`, `spread_unknown`, `estimated`, `absent`, `not_positive`, `undivided`, "
         "`rest_unknown`, "
         "`not_resolvable`, or the code of a condition that prevents a verdict");
}

std::string comparison_to_json(const ComparisonReport& report) {
  const auto& c = report.comparison;
  Json j = Json::object();
  j["schema"] = kComparisonSchema;
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
  j["domains_after"] = c.domains_after.empty() ? c.domains : c.domains_after;
  j["excluded"] = c.excluded;
  j["energy"] = record_json(c.energy, std::string("joules"));
  j["time"] = record_json(c.time, std::string("seconds"));
  j["power"] = record_json(c.power, std::string("watts"));
  j["by"] = to_string(report.by);
  j["rows"] = records_json(c.rows, std::string("joules"));
  j["unmatched"] = list_json(c.unmatched, [](const auto& each) -> Json {
    return {{"side", each.before ? "before" : "after"},
            {"name", each.row.name},
            {"detail", text_json(each.row.detail)},
            {"count", each.row.count},
            {"energy_joules", optional_json(each.row.energy.value, number_json)},
            {"reason", text_json(each.row.energy.reason)}};
  });
  j["conditions"] = list_json(c.conditions, [](const analysis::Condition& condition) -> Json {
    return {{"code", condition.code}, {"text", condition.text}, {"blocks", condition.blocks}};
  });
  j["costs"] = costs_json(report);
  j["self_test"] = report.self_test;
  j["gates"] = list_json(report.gates, [&](const auto& g) { return gate_json(report, g); });
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

void columns(const analysis::RatedPoint& rated, const analysis::SweepPoint& point,
             Columns& column) {
  constexpr std::string_view kOnce = "nothing was measured twice";
  column("setting", point.setting, "the setting, in the unit of `knob`");
  column("measurements", point.samples.size(), "number of measurements");
  column(
      "samples",
      [&] {
        return list_json(point.samples, [](const analysis::SweepSample& sample) -> Json {
          return {{"seconds", number_json(sample.seconds)},
                  {"energy_joules", number_json(sample.joules)}};
        });
      },
      "`seconds` and `energy_joules` of each measurement, a list");
  column("seconds", rated.mean.seconds,
         "mean over the measurements; of runs in blocks: in an average block");
  column("energy_joules", rated.mean.joules, "the same of the energy");
  column("mean_watts", rated.mean.joules / rated.mean.seconds, "`energy_joules` over `seconds`");
  column("slowdown_ratio", rated.slowdown.ratio,
         "time against the reference; 0.1 takes 10 % longer");
  column(
      "slowdown_interval_ratio", [&] { return interval_json(rated.slowdown.interval); },
      "its 95 % interval", kOnce);
  column("saving_ratio", rated.saving.ratio, "energy against the reference; 0.1 takes 10 % less");
  column(
      "saving_interval_ratio", [&] { return interval_json(rated.saving.interval); },
      "its 95 % interval", kOnce);
  column("score", rated.score, "the objective's value");
  column("feasible", rated.feasible,
         "it meets the constraints with a probability of at least 95 %, and so do all settings "
         "between it and the reference; where nothing was measured twice: by its single "
         "measurement");
  column("probability_within_ratio", rated.probability_within,
         "the probability that it meets the constraints",
         "no constraint, or nothing was measured twice");
  column("on_pareto_front", rated.on_pareto_front,
         "no other setting takes less time and less energy");
  column("probability_of_best_ratio", rated.probability_of_best,
         "the probability that its objective is the least of the feasible ones", kOnce);
}

namespace {

Json sweep_json(const AdvisedSweep& advised, const RecommendationOptions& options) {
  Json j = Json::object();
  j["knob"] = advised.sweep.knob;
  j["labels"] = list_json(advised.sweep.labels, [](const auto& label) -> Json {
    return {{"name", label.name}, {"value", label.value}};
  });
  j["simulated"] = advised.sweep.simulated;
  j["left_out"] = advised.sweep.left_out.size();
  for (const auto& [key, named] : {std::pair{"left_out_runs", &advised.sweep.left_out},
                                   std::pair{"outliers", &advised.sweep.outliers}}) {
    j[key] = list_json(*named, [](const analysis::NamedRun& run) -> Json {
      return {{"setting", number_json(run.setting)}, {"name", run.name}, {"reason", run.reason}};
    });
  }
  const auto& advice = advised.advice;
  j["reason"] = advice ? Json(nullptr) : Json(advice.error().message);
  j["recommended"] = advice ? number_json(advice->points[advice->best].point->setting) : nullptr;
  j["reference"] = advice ? number_json(advice->points[advice->reference].point->setting) : nullptr;
  j["equal_within_error"] = Json::array();
  j["points"] = Json::array();
  j["unranked"] = list_json(advised.sweep.unranked, [](const auto& unranked) -> Json {
    return {{"setting", number_json(unranked.setting)}, {"reason", unranked.reason}};
  });
  j["found"] = optional_json(advised.sweep.found, number_json);
  for (const char* key :
       {"saving_against_found_ratio", "saving_against_found_interval_ratio",
        "slowdown_against_found_ratio", "slowdown_against_found_interval_ratio", "regret_ratio",
        "saved_joules_per_day", "saved_interval_joules_per_day"}) {
    j[key] = nullptr;
  }
  if (!advice) return j;
  for (const std::size_t i : advice->ties) {
    j["equal_within_error"].push_back(number_json(advice->points[i].point->setting));
  }
  for (const auto& rated : advice->points) j["points"].push_back(record_json(rated, *rated.point));
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
    if (auto saving = advice->points[advice->best].saving.interval) {
      const double whole = joules_per_day(*advice, *options.daily);
      saving->low *= whole;
      saving->high *= whole;
      j["saved_interval_joules_per_day"] = interval_json(saving);
    }
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
  return json_text(Json{{"measurements", std::move(measurements)}}, 4) + '\n';
}

std::string recommendation_to_json(const std::vector<AdvisedSweep>& sweeps,
                                   const RecommendationOptions& options) {
  Json document = Json::object();
  document["schema"] = kRecommendationSchema;
  document["objective"] = to_string(options.choice.objective);
  document["eta"] = options.choice.objective == analysis::Objective::kCost
                        ? number_json(options.choice.eta)
                        : Json(nullptr);
  document["max_slowdown_ratio"] = optional_json(options.choice.max_slowdown, number_json);
  document["gpus"] = options.devices.empty() ? Json(nullptr) : Json(options.devices);
  document["max_watts"] = optional_json(options.choice.max_watts, number_json);
  document["sweeps"] =
      list_json(sweeps, [&](const AdvisedSweep& sweep) { return sweep_json(sweep, options); });
  return write_json(document) + '\n';
}

std::vector<RecordKind> result_kinds() {
  return {
      record_kind("", "difference", analysis::Difference{}, std::string("joules")),
      record_kind("sweeps[].points[].", "point", analysis::RatedPoint{}, analysis::SweepPoint{})};
}

}  // namespace jouleprof::report
