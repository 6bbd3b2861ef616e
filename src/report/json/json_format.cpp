#include "report/json/json_format.h"

#include <algorithm>
#include <utility>

#include "report/format/format.h"
#include "report/json/records.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

Result<std::string> summary(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options, const model::Profile& profile) {
  const auto costs = requested_costs(run, part, options);
  if (!costs) return forward_error(costs);
  const auto wall = wall_of(run, part, options.wall);
  if (!wall) return forward_error(wall);
  std::optional<PerUnit> per;
  if (options.per) per = per_unit(profile, *options.per, options.text.whole_machine);
  if (per && *costs) add_costs(*per, **costs);
  return to_json(profile, *costs ? &**costs : nullptr, *wall ? &**wall : nullptr,
                 per ? &*per : nullptr);
}

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const bool being_written = run.recording().run.being_written;
  return write_table_or_summary(
      run, part, options,
      {.serving = [&](const auto& served) { return serving_to_json(served, being_written); },
       .windows = windows_to_json,
       .collectives = collectives_to_json,
       .activity = [&](const auto& rows) { return activity_to_json(rows, *options.by); },
       .summary = [&](const auto& profile) { return summary(run, part, options, profile); }},
      out);
}

}  // namespace

extern constinit const Format json_format{
    .name = "json",
    .extension = ".json",
    .shows = "every figure of the summary, or of --by (docs/json.md)",
    .has_tables = true,
    .write = write};

namespace {

using model::DomainProfile;
using model::Profile;

constexpr const char* kSchema = "jouleprof.profile/3";

Json joules_json(const std::optional<Energy>& e) {
  return optional_json(e, [](Energy energy) { return report::joules_json(energy); });
}

// The parts and the other ways to the same whole; `counter` and so on may be of one domain or sums.
// `idle`: rest and held together where `at_rest` is false, else rest alone.
Json balance_json(const std::optional<Energy>& energy, const std::optional<Energy>& idle,
                  bool at_rest, const std::optional<Energy>& processes,
                  const std::optional<Energy>& others, const std::optional<Energy>& held_unowned,
                  const std::optional<Energy>& unattributed, const std::optional<Energy>& parts,
                  const std::optional<Energy>& counter, const std::optional<Energy>& integral) {
  Json balance = Json::object();
  balance["energy_joules"] = joules_json(energy);
  balance["counter_joules"] = joules_json(counter);
  balance["integral_joules"] = joules_json(integral);
  balance["rest_joules"] = joules_json(at_rest ? idle : std::nullopt);
  balance["idle_joules"] = joules_json(at_rest ? std::nullopt : idle);
  balance["processes_joules"] = joules_json(processes);
  balance["others_joules"] = joules_json(others);
  balance["held_unowned_joules"] = joules_json(held_unowned);
  balance["unattributed_joules"] = joules_json(unattributed);
  balance["parts_joules"] = joules_json(parts);
  return balance;
}

Json carbon_source_json(const Costs& costs) {
  if (const auto& series = costs.factors.series) {
    return {{"file", series->file},
            {"zone", text_json(series->zone)},
            {"column", text_json(series->column)},
            {"step_seconds", seconds_json(series->length)},
            {"steps", costs.steps},
            {"estimated_steps", costs.estimated_steps}};
  }
  return costs.factors.grams ? Json{{"option", "--carbon"}} : Json(nullptr);
}

}  // namespace

void columns(const PerUnit& per, Columns& column) {
  constexpr std::string_view kNoTotal = "the total has no energy";
  constexpr ColumnTraits kSmall{.decimals = 12};
  const bool has_interval = per.joules && per.has_interval;
  const auto interval = [&] {
    return has_interval ? Json{number_json(std::max(*per.joules - per.error_joules, 0.0)),
                               per.is_partial ? Json(nullptr)
                                              : number_json(*per.joules + per.upper_error_joules)}
                        : Json(nullptr);
  };
  column("name", per.unit.name, "the name of a unit");
  column("count", per.unit.count, "how many there were");
  column("of", per.is_command ? "command" : "machine", "`command`, or `machine`: all devices");
  column("seconds", per.seconds, "the run's time over the count");
  column("joules", per.joules, "the quoted energy over the count", kNoTotal);
  column("interval_joules", interval,
         "[lower, upper bound], 95 %; the upper bound is null where `is_partial`", kNoTotal);
  column("is_partial", per.is_partial,
         "true: `joules`, money and carbon are lower bounds, as `total.is_partial`");
  column("repeatability_joules",
         has_interval ? std::optional(per.repeatability_joules) : std::nullopt,
         "half of the interval without the calibration error", kNoTotal);
  column("dynamic_joules", per.dynamic_joules, "of `joules`, what is above rest",
         "the energy at rest is unknown");
  column("provenance", per.provenance, "of the quoted energy");
  column("money", per.money, "what one costs", "`--price` was not given", kSmall);
  column("currency", per.money ? std::string_view(per.currency) : std::string_view{},
         "of `money`, as it was given", "it was not given");
  column("carbon_grams", per.carbon_grams, "of one, in grams of CO2 equivalent",
         "`--carbon` was not given", kSmall);
}

void columns(const Costs& costs, Columns& column) {
  const auto& price = costs.factors.price;
  constexpr std::string_view kNotGiven = "not given";
  constexpr ColumnTraits kSmall{.decimals = 9};
  column("energy_joules", costs.energy, "what is multiplied, without the PUE");
  column("of", costs.is_command ? "command" : "machine",
         "`command`, or `machine`: all devices (`--whole-machine`, and where no command is known)");
  std::optional<Bounds> bounds;
  if (costs.has_interval) {
    bounds.emplace(std::max(costs.energy - costs.error, Energy{}), std::nullopt);
    if (!costs.is_partial) bounds->high = costs.energy + costs.upper_error;
  }
  column("interval_joules", bounds,
         "its [lower, upper bound], 95 %; the factors are taken as exact; the upper bound is null "
         "where `is_partial`",
         "the energy cannot be bounded");
  column("is_partial", costs.is_partial,
         "true: all of these figures are lower bounds, as `total.is_partial`");
  column(
      "domains", [&] { return Json(costs.domains); }, "the domains in the total, a list");
  column("pue", costs.factors.pue, "`--pue`", kNotGiven);
  column("money", costs.money, "what the energy costs", "`--price` was not given", kSmall);
  column("currency", price ? std::string_view(price->currency) : std::string_view{},
         "of `money`, as it was given", "it was not given");
  column("price_per_kilowatt_hour", price ? std::optional(price->per_kilowatt_hour) : std::nullopt,
         "`--price`", kNotGiven);
  column("carbon_grams", costs.carbon_grams, "CO2 equivalent in grams", kNotGiven, kSmall);
  column("carbon_grams_per_kilowatt_hour", costs.mean_grams,
         "the intensity; of a file, the mean over the energy", kNotGiven);
  column(
      "carbon_source", [&] { return carbon_source_json(costs); },
      "`option`; or `file`, `zone`, `column`, `step_seconds`, `steps` that were used, and "
      "`estimated_steps` that the source estimated",
      kNotGiven);
  column("scope", scope_of_costs(), "what the figures do not include");
}

Json balance_json(const Profile& profile, const DomainProfile& d) {
  return balance_json(d.energy ? std::optional(d.energy->energy) : std::nullopt, d.idle_part,
                      d.levels.rest.has_value(), processes_of(profile, d), d.others, d.held_unowned,
                      d.unattributed, d.balance.parts, d.balance.counter, d.balance.integral);
}

Json command_json(const std::optional<model::CommandEnergy>& command) {
  return record_json(command);
}

Json profile_document(const Profile& profile, const Costs* costs, const PerUnit* per) {
  const auto& run = profile.run;
  const Total total = total_of(profile);
  Json j = Json::object();
  j["schema"] = kSchema;
  j["tool_version"] = text_json(run.tool_version);
  j["source"] = text_json(run.source);
  j["host"] = text_json(run.host);
  j["boot_id"] = text_json(run.boot_id);
  j["user"] = text_json(run.user);
  j["job"] = text_json(run.rank.job);
  j["step"] = text_json(run.rank.step);
  j["node_list"] = text_json(run.node_list);
  j["launcher"] = text_json(run.rank.launcher);
  j["rank"] = optional_json(run.rank.global);
  j["world_size"] = optional_json(run.rank.world_size);
  j["command"] = run.command;
  j["working_directory"] = text_json(run.working_directory);
  j["pid"] = optional_json(run.pid);
  j["exit_status"] = optional_json(run.exit_status);
  j["start_time"] =
      profile.start_time == RealTime{} ? Json(nullptr) : Json(utc_text(profile.start_time));
  j["offset_seconds"] =
      optional_json(run.work_begin, [&](HostTime t) { return seconds_json(profile.begin - t); });
  j["duration_seconds"] = profile.has_span() ? seconds_json(profile.duration()) : Json(nullptr);
  j["complete"] = run.complete;
  j["being_written"] = run.being_written;
  j["simulated"] = profile.simulated;
  j["command_energy"] = command_json(total.command);
  j["command_energy_reason"] = text_json(no_command_text(profile, total));
  j["total"] = record_json(total, profile);
  j["domains"] = records_json(profile.domains, profile);
  j["processes"] = records_json(profile.processes, profile);
  j["windows"] = records_json(profile.windows, profile);
  j["balance"] = balance_json(total.energy ? std::optional(total.energy->energy) : std::nullopt,
                              total.parts ? total.idle_part : std::nullopt, total.rest.has_value(),
                              total.processes, total.others, total.held_unowned, total.unattributed,
                              total.parts, total.counter, total.integral);
  j["per_unit"] = per != nullptr ? record_json(*per) : Json(nullptr);
  j["costs"] = costs != nullptr ? costs_json(*costs) : Json(nullptr);
  j["wall"] = nullptr;  // its callers that have a run add it
  j["findings"] = records_json(profile.findings);
  j["overhead"] = record_json(profile.overhead);
  j["warnings"] = profile.warnings;
  return j;
}

std::string to_json(const Profile& profile, const Costs* costs, const WallComparison* wall,
                    const PerUnit* per) {
  Json j = profile_document(profile, costs, per);
  if (wall != nullptr) j["wall"] = wall_json(*wall);
  return write_json(j) + '\n';
}

Json costs_json(const Costs& costs) { return record_json(costs); }

std::vector<RecordKind> part_kinds() {
  return {record_kind("per_unit.", "per_unit", PerUnit{}), record_kind("", "costs", Costs{}),
          record_kind("domains[].command.", "domain_command", model::CommandEnergy{})};
}

Json wall_json(const WallComparison& wall) {
  Json j = Json::object();
  j["host"] = text_json(wall.host);
  j["file"] = text_json(wall.log.file);
  j["format"] = wall.log.format;
  j["column"] = text_json(wall.log.column);
  j["readings"] = wall.wall.readings;
  j["longest_pause_seconds"] = seconds_json(wall.wall.longest_pause);
  j["covered_seconds"] = seconds_json(wall.wall.end - wall.wall.begin);
  j["uncovered_seconds"] = seconds_json(wall.uncovered);
  j["energy_joules"] = joules_json(wall.wall.energy);
  j["error_joules"] = optional_json(
      wall.log.error, [&](double error) { return number_json(error * wall.wall.energy.joules()); });
  j["mean_watts"] =
      number_json(wall.wall.energy.joules() / seconds(wall.wall.end - wall.wall.begin));
  const auto& sum = wall.components;
  j["components"] = wall.domains;
  j["components_joules"] = sum ? joules_json(sum->energy) : Json(nullptr);
  j["components_error_joules"] = sum ? joules_json(sum->farthest()) : Json(nullptr);
  j["explained_ratio"] = optional_json(wall.explained(), number_json);
  j["unexplained_joules"] = sum ? joules_json(wall.wall.energy - sum->energy) : Json(nullptr);
  j["slope_ratio"] = wall.slope ? number_json(wall.slope->ratio) : Json(nullptr);
  j["slope_error_ratio"] = wall.slope ? number_json(wall.slope->error) : Json(nullptr);
  j["warnings"] = wall.log.warnings;
  return j;
}

}  // namespace jouleprof::report
