#include "report/json/activity_json.h"

#include <cmath>
#include <utility>

#include "model/window_sum.h"
#include "report/activity/activity.h"
#include "report/format/format.h"
#include "report/quantity.h"
#include "report/render.h"

namespace jouleprof::report {
namespace {

using model::ActivityProfile;
using model::ActivityRow;
using model::Measurement;

constexpr const char* kActivitySchema = "jouleprof.activity/3";

Json interval_json(const std::optional<Measurement>& m) {
  if (!m) return nullptr;
  return Json::array({joules_json(m->low()), joules_json(m->high())});
}

Json energy_json(const std::optional<Measurement>& m) {
  return m ? joules_json(m->energy) : Json(nullptr);
}

Json watts_json(const std::optional<Power>& p) {
  return p ? number_json(p->watts()) : Json(nullptr);
}

Json ratio_json(const std::optional<double>& value) {
  return value ? number_json(*value) : Json(nullptr);
}

Json remembered_json(const std::optional<model::RememberedUse>& use) {
  if (!use) return nullptr;
  Json j = Json::object();
  j["kernels"] = use->kernels;
  j["contradicted"] = use->contradicted;
  j["first_run_time"] = utc_text(use->first);
  j["last_run_time"] = utc_text(use->last);
  return j;
}

void add_folded(Json& j, const std::optional<model::FoldedLayers>& folded) {
  const auto spread = folded ? folded->joules : std::nullopt;
  const auto joules = [&](double value) {
    return spread ? joules_json(Energy::joules(value)) : Json(nullptr);
  };
  const auto [mean, deviation, least, greatest] = spread.value_or(model::FoldedLayers::Spread{});
  j["folded_layers"] = folded ? Json(folded->count) : Json(nullptr);
  j["folded_mean_joules"] = joules(mean);
  j["folded_deviation_joules"] = joules(deviation);
  j["folded_least_joules"] = joules(least);
  j["folded_greatest_joules"] = joules(greatest);
}

Json row_json(const ActivityProfile& profile, const ActivityLine& line,
              const ActivityOptions& options) {
  const ActivityRow& row = *line.row;
  const auto per_launch = joules_per_launch(row);
  Json j = Json::object();
  j["number"] = line.index;
  j["parent"] = line.depth > 0 ? Json(row.parent) : Json(nullptr);
  j["name"] = row.name;
  j["detail"] = text_json(row.detail);
  j["symbol"] = text_json(row.symbol);
  j["calls"] = row.count > 0 ? Json(row.count) : Json(nullptr);
  j["launches"] = row.launches;
  j["busy_seconds"] = seconds_json(row.busy);
  j["overlapped_seconds"] = row.overlapped ? seconds_json(*row.overlapped) : Json(nullptr);
  j["provenance"] =
      to_string(whole_of(row) ? whole_of(row)->provenance : model::Provenance::kUnavailable);
  j["energy_joules"] = energy_json(row.energy);
  j["interval_joules"] = interval_json(row.energy);
  j["repeatability_joules"] = row.energy ? joules_json(row.energy->repeatability) : Json(nullptr);
  j["inclusive_joules"] = energy_json(row.inclusive);
  j["inclusive_interval_joules"] = interval_json(row.inclusive);
  j["energy_per_launch_joules"] = per_launch ? decimal(fixed_decimal(*per_launch, 9)) : nullptr;
  j["mean_watts"] = watts_json(power_of(row));
  j["share_ratio"] = ratio_json(share_of(profile, whole_of(row)));
  j["resolvable"] = whole_of(row) ? Json(row.resolvable) : Json(nullptr);
  j["remembered"] = whole_of(row) ? Json(row.remembered) : Json(nullptr);
  j["group"] = row.group != model::kNone ? Json(row.group) : Json(nullptr);
  j["group_joules"] = energy_json(row.group_energy);
  j["group_interval_joules"] = interval_json(row.group_energy);
  if (options.by == ActivityBy::kLayer) {
    j["parameters"] = row.parameters;
    j["macs"] = row.macs ? number_json(*row.macs) : Json(nullptr);
    if (options.fold) add_folded(j, row.folded);
  }
  j["reason"] = text_json(row.reason);
  return j;
}

Json profile_json(const ActivityProfile& profile, const ActivityOptions& options) {
  const ActivityView view = view_of(profile, options);
  Json j = Json::object();
  j["domain"] = to_string(profile.domain.kind);
  j["device"] = profile.domain.device;
  j["name"] = text_json(profile.domain.name);
  j["uuid"] = text_json(profile.domain.uuid);
  j["begin_host_seconds"] = seconds_json(profile.begin.time_since_epoch());
  j["duration_seconds"] = seconds_json(profile.length());
  j["provenance"] = to_string(profile.measured.provenance);
  j["measured_joules"] = joules_json(profile.measured.energy);
  j["measured_interval_joules"] = interval_json(profile.measured);
  j["idle_joules"] = profile.idle_power ? joules_json(profile.idle) : Json(nullptr);
  add_levels(j, profile.levels);
  j["kernels_joules"] = joules_json(profile.kernels);
  j["idle_between_launches_joules"] = joules_json(profile.gaps);
  j["others_joules"] = joules_json(profile.others);
  j["unattributed_joules"] = joules_json(profile.unattributed);
  j["lost_joules"] = joules_json(profile.lost);
  j["replay_joules"] = energy_json(profile.replay);
  j["replay_seconds"] = profile.replay ? seconds_json(profile.replay_time) : Json(nullptr);
  j["idle_watts"] = watts_json(profile.idle_power);
  j["idle_error_watts"] = watts_json(profile.idle_error);
  j["idle_observed"] = profile.idle_observed;
  j["explained_ratio"] = profile.rows > 0 ? number_json(profile.explained) : Json(nullptr);
  j["regression_rows"] = profile.rows > 0 ? Json(profile.rows) : Json(nullptr);
  j["method"] = text_json(profile.method);
  j["remembered"] = remembered_json(profile.remembered);
  j["sensor"] = text_json(profile.measured.sensor);
  j["launches"] = profile.launches;
  j["dropped"] = profile.dropped;
  j["memsets_left_out"] = profile.memsets_left_out;
  j["processes"] = Json::array();
  for (const auto& p : profile.by_process) {
    Json process = Json::object();
    process["pid"] = p.pid;
    process["launches"] = p.launches;
    process["busy_seconds"] = seconds_json(p.busy);
    process["kernels_joules"] = joules_json(p.kernels);
    process["idle_between_launches_joules"] = joules_json(p.idle_between);
    j["processes"].push_back(std::move(process));
  }
  j["rows"] = Json::array();
  for (const auto& line : view.lines) j["rows"].push_back(row_json(profile, line, options));
  j["rows_left_out"] = view.left_out;
  j["warnings"] = profile.warnings;
  return j;
}

}  // namespace

Json activity_document(const std::vector<ActivityProfile>& profiles,
                       const ActivityOptions& options) {
  Json document = Json::object();
  document["schema"] = kActivitySchema;
  document["by"] = to_string(options.by);
  document["devices"] = Json::array();
  for (const auto& profile : profiles) {
    document["devices"].push_back(profile_json(profile, options));
  }
  return document;
}

std::string activity_to_json(const std::vector<ActivityProfile>& profiles,
                             const ActivityOptions& options) {
  return write_json(activity_document(profiles, options)) + '\n';
}

namespace {

using model::CollectiveTimes;

constexpr const char* kCollectivesSchema = "jouleprof.collectives/1";

void add_part(Json& to, const std::string& name, bool split, Duration time,
              const std::optional<Measurement>& energy) {
  const bool known = split && energy;
  to[name + "_seconds"] = split ? seconds_json(time) : Json(nullptr);
  to[name + "_joules"] = known ? joules_json(energy->energy) : Json(nullptr);
  to[name + "_interval_joules"] =
      known ? Json::array({joules_json(energy->low()), joules_json(energy->high())})
            : Json(nullptr);
}

void add_times(Json& to, const CollectiveTimes& times) {
  to["calls"] = times.calls;
  to["matched"] = times.matched;
  to["provenance"] = to_string(times.transfer_energy ? times.transfer_energy->provenance
                                                     : model::Provenance::kUnavailable);
  add_part(to, "transfer", times.matched > 0, times.transfer, times.transfer_energy);
  add_part(to, "waiting", times.matched > 0, times.waiting, times.waiting_energy);
  add_part(to, "unsplit", true, times.unsplit, times.unsplit_energy);
}

Json rank_json(const model::CollectiveRank& rank) {
  Json j = Json::object();
  j["rank"] = optional_json(rank.rank.global);
  j["local_rank"] = optional_json(rank.rank.local);
  j["pid"] = rank.pid;
  j["device"] = rank.device;
  add_times(j, rank);
  j["last"] = rank.last;
  j["waited_for_seconds"] = seconds_json(rank.waited_for);
  j["waited_for_joules"] = optional_json(rank.waited_for_energy, joules_json);
  j["kinds"] = Json::array();
  for (const auto& kind : rank.kinds) {
    Json k = Json::object();
    k["name"] = text_json(kind.name);
    add_times(k, kind);
    j["kinds"].push_back(std::move(k));
  }
  return j;
}

}  // namespace

std::string collectives_to_json(const model::CollectiveProfile& profile) {
  Json j = Json::object();
  j["schema"] = kCollectivesSchema;
  const auto* straggler = profile.straggler();
  j["slowest_rank"] = straggler != nullptr ? optional_json(straggler->rank.global) : Json(nullptr);
  j["end_spread_seconds"] = optional_json(profile.end_spread, seconds_json);
  j["ranks"] = Json::array();
  for (const auto& rank : profile.ranks) j["ranks"].push_back(rank_json(rank));
  j["warnings"] = profile.problems;
  return write_json(j) + '\n';
}

namespace {

using model::WindowEnergy;
using model::WindowGroup;

Json interval_json(const Measurement& m) {
  return Json::array({joules_json(m.low()), joules_json(m.high())});
}

Json energy_json(const WindowGroup& group, const WindowEnergy& e, const model::Domain& domain) {
  const bool has_sum = is_whole(group, e);  // a mean is a mean all the same
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(domain.id);
  j["domain"] = to_string(domain.kind);
  j["device"] = domain.device;
  j["count"] = e.count;
  j["provenance"] =
      group.imported
          ? Json(nullptr)
          : Json(to_string(e.energy ? e.energy->provenance : model::Provenance::kUnavailable));
  j["energy_joules"] = nullptr;
  j["interval_joules"] = nullptr;
  j["repeatability_joules"] = nullptr;
  j["mean_joules"] = nullptr;
  j["mean_interval_joules"] = nullptr;
  j["quartiles_joules"] =
      e.quartiles ? Json::array({joules_json(e.quartiles->lower), joules_json(e.quartiles->median),
                                 joules_json(e.quartiles->upper)})
                  : Json(nullptr);
  if (e.energy) {
    const Measurement mean = *mean_of(e);
    if (has_sum) {
      j["energy_joules"] = joules_json(e.energy->energy);
      j["interval_joules"] = interval_json(*e.energy);
      j["repeatability_joules"] = joules_json(e.energy->repeatability);
    }
    j["mean_joules"] = joules_json(mean.energy);
    j["mean_interval_joules"] = interval_json(mean);
  }
  if (e.reported) {
    if (has_sum) j["energy_joules"] = joules_json(*e.reported);
    j["mean_joules"] = joules_json(model::mean_of(*e.reported, e.count));
  }
  add_levels(j, has_sum ? e.levels : model::EnergyLevels{});
  j["sensor"] = e.energy ? text_json(e.energy->sensor) : Json(nullptr);
  j["method"] = e.energy ? text_json(e.energy->method) : Json(nullptr);
  j["reason"] = text_json(e.reason);
  return j;
}

}  // namespace

void add_levels(Json& to, const model::EnergyLevels& levels) {
  const auto add = [&](const std::string& name, const std::optional<Measurement>& m) {
    to[name + "_joules"] = m ? joules_json(m->energy) : Json(nullptr);
    to[name + "_interval_joules"] =
        m ? Json::array({joules_json(m->energy - m->error), joules_json(m->energy + m->error)})
          : Json(nullptr);
  };
  add("rest", levels.rest);
  add("held", levels.held);
  add("active", levels.active);
  to["levels_reason"] = text_json(levels.reason);
}

Json windows_json(const model::Profile& profile) {
  Json list = Json::array();
  for (const WindowGroup& group : profile.windows) {
    Json j = Json::object();
    j["name"] = group.name;
    j["imported"] = group.imported;
    j["labels"] = Json::array();
    for (const auto& [name, value] : group.labels) {
      Json label = Json::object();
      label["name"] = name;
      label["value"] = value;
      j["labels"].push_back(std::move(label));
    }
    j["count"] = group.count;
    j["total_seconds"] = seconds_json(group.total_time);
    j["mean_seconds"] = seconds_json(group.mean_time());
    const auto& times = group.time_quartiles;
    j["quartiles_seconds"] =
        times ? Json::array({seconds_json(times->lower), seconds_json(times->median),
                             seconds_json(times->upper)})
              : Json(nullptr);
    j["energy"] = Json::array();
    for (std::size_t d = 0; d < group.energies.size() && d < profile.domains.size(); ++d) {
      j["energy"].push_back(energy_json(group, group.energies[d], profile.domains[d].domain));
    }
    list.push_back(std::move(j));
  }
  return list;
}

std::string windows_to_json(const model::Profile& profile) {
  Json j = Json::object();
  j["schema"] = "jouleprof.windows/1";
  j["simulated"] = profile.simulated;
  j["windows"] = windows_json(profile);
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
