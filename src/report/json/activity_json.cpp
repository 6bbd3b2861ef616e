#include "report/json/activity_json.h"

#include "report/activity/activity_view.h"
#include "report/json/json_text.h"
#include "report/json/window_json.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::ActivityProfile;
using model::ActivityRow;
using model::Measurement;

constexpr const char* kSchema = "jouleprof.activity/3";

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
  document["schema"] = kSchema;
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

}  // namespace jouleprof::report
