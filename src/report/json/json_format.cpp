#include "report/json/json_format.h"

#include <algorithm>
#include <utility>

#include "report/format/format.h"
#include "report/json/activity_json.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  if (options.windows) {
    const auto made = profile_with_windows(run, part);
    if (!made) return forward_error(made);
    out << windows_to_json(**made);
    return {};
  }
  if (options.collectives) {
    const auto made = traced_collectives(run, part);
    if (!made) return forward_error(made);
    out << collectives_to_json(**made);
    return {};
  }
  std::optional<Costs> costs;
  if (options.costs.any() && !options.by) {
    auto made = costs_of(run, part, options.costs, options.text.whole_machine);
    if (!made) return forward_error(made);
    costs = std::move(*made);
  }
  std::optional<WallComparison> wall;
  if (options.wall && !options.by) {
    auto made = compare_wall(run, part, *options.wall);
    if (!made) return forward_error(made);
    wall = std::move(*made);
  }
  return write_table_or_summary(
      run, part, options, out,
      [&](const auto& activity) { return activity_to_json(activity, *options.by); },
      [&](const auto& profile) {
        const auto per =
            options.per ? std::optional(per_unit(profile, *options.per, options.text.whole_machine))
                        : std::nullopt;
        return to_json(profile, costs ? &*costs : nullptr, wall ? &*wall : nullptr,
                       per ? &*per : nullptr);
      });
}

}  // namespace

extern const Format json_format;
constinit const Format json_format{
    .name = "json",
    .extension = ".json",
    .shows = "every figure of the summary, or of --by (docs/json.md)",
    .has_tables = true,
    .write = write};

namespace {

using model::DomainProfile;
using model::Profile;
using model::Provenance;

constexpr const char* kSchema = "jouleprof.profile/3";

Json watts_json(const std::optional<Power>& p) {
  return optional_json(p, [](Power power) { return number_json(power.watts()); });
}

Json joules_json(const std::optional<Energy>& e) {
  return optional_json(e, [](Energy energy) { return report::joules_json(energy); });
}

Json interval_json(const std::optional<model::Measurement>& m) {
  if (!m) return nullptr;
  return Json::array({report::joules_json(m->low()), report::joules_json(m->high())});
}

Json level_json(const std::optional<model::PowerLevel>& level) {
  if (!level) return nullptr;
  Json j = Json::object();
  j["watts"] = number_json(level->power.watts());
  j["error_watts"] = number_json(level->error.watts());
  j["source"] = level->source;
  j["observed"] = level->observed;
  j["temperature_celsius"] = optional_json(level->temperature_celsius, number_json);
  return j;
}

Json division_json(const std::optional<model::DivisionBounds>& bounds) {
  if (!bounds) return nullptr;
  return Json{report::joules_json(bounds->low), report::joules_json(bounds->high)};
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

Json per_unit_json(const PerUnit& per) {
  Json j = Json::object();
  j["name"] = text_json(per.unit.name);
  j["count"] = number_json(per.unit.count);
  j["of"] = per.is_command ? "command" : "machine";
  j["seconds"] = number_json(per.seconds);
  j["joules"] = optional_json(per.joules, number_json);
  j["interval_joules"] = per.joules
                             ? Json{number_json(std::max(*per.joules - per.error_joules, 0.0)),
                                    number_json(*per.joules + per.upper_error_joules)}
                             : Json(nullptr);
  j["repeatability_joules"] = per.joules ? number_json(per.repeatability_joules) : Json(nullptr);
  j["dynamic_joules"] = optional_json(per.dynamic_joules, number_json);
  j["provenance"] = to_string(per.provenance);
  return j;
}

Json domain_json(const Profile& profile, const DomainProfile& d) {
  const auto& m = d.energy;
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(d.domain.id);
  j["domain"] = to_string(d.domain.kind);
  j["device"] = d.domain.device;
  j["name"] = text_json(d.domain.name);
  j["uuid"] = text_json(d.domain.uuid);
  j["parent"] = optional_json(d.domain.parent,
                              [](model::DomainId id) { return static_cast<std::uint32_t>(id); });
  j["visible"] = d.domain.visible;
  j["provenance"] = to_string(m ? m->provenance : Provenance::kUnavailable);
  j["energy_joules"] = m ? report::joules_json(m->energy) : Json(nullptr);
  j["interval_joules"] = interval_json(m);
  j["repeatability_joules"] = m ? report::joules_json(m->repeatability) : Json(nullptr);
  j["least_joules"] = joules_json(d.least);
  add_levels(j, d.levels);
  j["dynamic_joules"] = joules_json(dynamic_of(d));
  j["rest_power"] = level_json(d.rest_power);
  j["held_power"] = level_json(d.held_power);
  j["mean_watts"] = watts_json(d.mean_power);
  j["peak_watts"] = watts_json(d.peak_power);
  j["peak_window_seconds"] = optional_json(d.peak_window, seconds_json);
  j["sensor"] = m ? text_json(m->sensor) : Json(nullptr);
  j["method"] = m ? text_json(m->method) : Json(nullptr);
  j["reason"] = m ? Json(nullptr) : text_json(d.reason);
  j["command"] = command_json(d.command);
  j["shares_include_rest"] = d.balance.parts ? Json(d.shares_include_rest) : Json(nullptr);
  j["within_command_joules"] = joules_json(d.within_command);
  j["command_division_interval_joules"] = division_json(d.command_bounds);
  j["balance"] =
      balance_json(m ? std::optional(m->energy) : std::nullopt, d.idle_part,
                   d.levels.rest.has_value(), processes_of(profile, d), d.others, d.held_unowned,
                   d.unattributed, d.balance.parts, d.balance.counter, d.balance.integral);
  return j;
}

Json total_json(const Profile& profile, const Total& total) {
  Json j = Json::object();
  const auto& m = total.energy;
  j["provenance"] = to_string(m ? m->provenance : Provenance::kUnavailable);
  j["energy_joules"] = m ? report::joules_json(m->energy) : Json(nullptr);
  j["interval_joules"] = interval_json(m);
  j["repeatability_joules"] = m ? report::joules_json(m->repeatability) : Json(nullptr);
  j["rest_joules"] = joules_json(total.rest);
  j["held_joules"] = joules_json(total.held);
  j["active_joules"] = joules_json(total.active);
  j["dynamic_joules"] = m && total.rest ? report::joules_json(m->energy - *total.rest) : nullptr;
  j["mean_watts"] = m && profile.duration() > Duration{}
                        ? number_json((m->energy / profile.duration()).watts())
                        : nullptr;
  j["is_partial"] = total.lost.has_value();
  j["of"] = Json::array();
  for (const DomainProfile* d : total.counted) {
    j["of"].push_back(static_cast<std::uint32_t>(d->domain.id));
  }
  j["without"] = Json::array();
  for (const auto& excluded : total.excluded) {
    Json entry = Json::object();
    entry["id"] = static_cast<std::uint32_t>(excluded.domain->domain.id);
    entry["device"] = excluded.domain->domain.device;
    entry["reason"] = excluded.why;
    j["without"].push_back(std::move(entry));
  }
  return j;
}

Json process_json(const Profile& profile, const model::ProcessProfile& p) {
  const auto since_begin = [&](HostTime t) { return seconds_json(t - profile.begin); };
  Json j = Json::object();
  j["pid"] = p.process.pid;
  j["own_pid"] = optional_json(p.process.own_pid);
  j["parent_pid"] = p.process.parent_pid;
  j["name"] = p.process.name;
  j["command_line"] = text_json(p.process.command_line);
  j["start_seconds"] = since_begin(p.process.start);
  j["end_seconds"] = optional_json(p.process.end, since_begin);
  j["cpu_seconds"] = optional_json(p.cpu_time, seconds_json);
  j["energy_joules"] = p.shares.empty() ? nullptr : report::joules_json(energy_of(profile, p));
  j["provenance"] = to_string(p.shares.empty() ? Provenance::kUnavailable : p.provenance);
  j["energy"] = Json::array();
  for (const auto& share : p.shares) {
    for (const DomainProfile& d : profile.domains) {
      if (d.domain.id != share.domain) continue;
      Json entry = Json::object();
      entry["id"] = static_cast<std::uint32_t>(share.domain);
      entry["domain"] = to_string(d.domain.kind);
      entry["device"] = d.domain.device;
      entry["energy_joules"] = report::joules_json(share.energy);
      entry["kernels_joules"] = joules_json(share.kernels);
      entry["idle_between_launches_joules"] = joules_json(share.idle_between);
      entry["held_joules"] = joules_json(share.held);
      entry["division_interval_joules"] = division_json(share.bounds);
      j["energy"].push_back(std::move(entry));
    }
  }
  j["peak_pss_bytes"] = optional_json(p.peak_pss_bytes);
  j["peak_uss_bytes"] = optional_json(p.peak_uss_bytes);
  j["peak_rss_bytes"] = optional_json(p.peak_rss_bytes);
  j["peak_gpu_memory_bytes"] = optional_json(p.peak_gpu_memory_bytes);
  j["mean_sm_utilisation_ratio"] = optional_json(p.mean_sm_utilisation, number_json);
  return j;
}

Json finding_json(const model::Finding& f) {
  Json j = Json::object();
  j["code"] = f.code;
  j["device"] = text_json(f.device);
  j["text"] = f.text;
  j["next_step"] = f.next_step;
  j["energy_joules"] = report::joules_json(f.energy);
  j["interval_joules"] = Json::array({report::joules_json(std::max(f.energy - f.error, Energy{})),
                                      report::joules_json(f.energy + f.error)});
  j["share_ratio"] = number_json(f.share);
  j["estimated"] = f.estimated;
  return j;
}

Json overhead_json(const model::Overhead& o) {
  Json j = Json::object();
  j["cpu_seconds"] = seconds_json(o.cpu_time);
  j["wall_seconds"] = seconds_json(o.wall_time);
  j["cpu_ratio"] = o.wall_time > Duration{}
                       ? number_json(seconds(o.cpu_time) / seconds(o.wall_time))
                       : Json(nullptr);
  j["peak_memory_bytes"] = o.peak_memory_bytes > 0 ? Json(o.peak_memory_bytes) : Json(nullptr);
  return j;
}

}  // namespace

Json command_json(const std::optional<model::CommandEnergy>& command) {
  if (!command) return nullptr;
  Json j = Json::object();
  j["energy_joules"] = report::joules_json(command->energy.energy);
  j["interval_joules"] =
      Json::array({report::joules_json(command->low()), report::joules_json(command->high())});
  j["repeatability_joules"] = report::joules_json(command->energy.repeatability);
  j["processes_joules"] = report::joules_json(command->processes);
  j["rest_joules"] = joules_json(command->rest);
  j["undivided_joules"] = report::joules_json(command->undivided);
  j["is_divided"] = command->is_divided;
  j["provenance"] = to_string(command->energy.provenance);
  return j;
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
  j["command_energy_reason"] = text_json(profile.command_reason);
  j["total"] = total_json(profile, total);
  j["domains"] = Json::array();
  for (const DomainProfile& d : profile.domains) j["domains"].push_back(domain_json(profile, d));
  j["processes"] = Json::array();
  for (const auto& p : profile.processes) j["processes"].push_back(process_json(profile, p));
  j["windows"] = windows_json(profile);
  j["balance"] = balance_json(total.energy ? std::optional(total.energy->energy) : std::nullopt,
                              total.parts ? total.idle_part : std::nullopt, total.rest.has_value(),
                              total.processes, total.others, total.held_unowned, total.unattributed,
                              total.parts, total.counter, total.integral);
  j["per_unit"] = per != nullptr ? per_unit_json(*per) : Json(nullptr);
  j["costs"] = costs != nullptr ? costs_json(*costs) : Json(nullptr);
  j["wall"] = nullptr;  // only to_json() has it
  j["findings"] = Json::array();
  for (const auto& f : profile.findings) j["findings"].push_back(finding_json(f));
  j["overhead"] = optional_json(profile.overhead, overhead_json);
  j["warnings"] = profile.warnings;
  return j;
}

std::string to_json(const Profile& profile, const Costs* costs, const WallComparison* wall,
                    const PerUnit* per) {
  Json j = profile_document(profile, costs, per);
  if (wall != nullptr) j["wall"] = wall_json(*wall);
  return write_json(j) + '\n';
}

Json costs_json(const Costs& costs) {
  const auto& factors = costs.factors;
  Json j = Json::object();
  j["energy_joules"] = joules_json(costs.energy);
  j["of"] = costs.is_command ? "command" : "machine";
  j["interval_joules"] = {joules_json(std::max(costs.energy - costs.error, Energy{})),
                          joules_json(costs.energy + costs.upper_error)};
  j["domains"] = costs.domains;
  j["pue"] = optional_json(factors.pue, number_json);
  j["money"] = optional_json(costs.money, [](double v) { return decimal(fixed_decimal(v, 9)); });
  j["currency"] = factors.price ? text_json(factors.price->currency) : Json(nullptr);
  j["price_per_kilowatt_hour"] =
      factors.price ? number_json(factors.price->per_kilowatt_hour) : Json(nullptr);
  j["carbon_grams"] =
      optional_json(costs.carbon_grams, [](double v) { return decimal(fixed_decimal(v, 9)); });
  j["carbon_grams_per_kilowatt_hour"] = optional_json(costs.mean_grams, number_json);
  j["carbon_source"] = nullptr;
  if (factors.grams) j["carbon_source"] = {{"option", "--carbon"}};
  if (const auto& series = factors.series) {
    j["carbon_source"] = {{"file", series->file},
                          {"zone", text_json(series->zone)},
                          {"column", text_json(series->column)},
                          {"step_seconds", seconds_json(series->length)},
                          {"steps", costs.steps},
                          {"estimated_steps", costs.estimated_steps}};
  }
  j["scope"] = scope_of_costs();
  return j;
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
  j["mean_watts"] =
      number_json(wall.wall.energy.joules() / seconds(wall.wall.end - wall.wall.begin));
  const auto& sum = wall.components;
  j["components"] = wall.domains;
  j["components_joules"] = sum ? joules_json(sum->energy) : Json(nullptr);
  j["components_error_joules"] = sum ? joules_json(sum->error) : Json(nullptr);
  j["explained_ratio"] = optional_json(wall.explained(), number_json);
  j["unexplained_joules"] = sum ? joules_json(wall.wall.energy - sum->energy) : Json(nullptr);
  j["warnings"] = wall.log.warnings;
  return j;
}

}  // namespace jouleprof::report
