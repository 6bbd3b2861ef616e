#include <cmath>
#include <utility>

#include "model/window_sum.h"
#include "report/activity/activity.h"
#include "report/format/format.h"
#include "report/json/json_format.h"
#include "report/json/records.h"
#include "report/quantity.h"
#include "report/render.h"

namespace jouleprof::report {
namespace {

using model::ActivityProfile;
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

Json remembered_json(const std::optional<model::RememberedUse>& use) {
  if (!use) return nullptr;
  Json j = Json::object();
  j["kernels"] = use->kernels;
  j["contradicted"] = use->contradicted;
  j["first_run_time"] = utc_text(use->first);
  j["last_run_time"] = utc_text(use->last);
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
  JsonColumns level_columns(j);
  columns(profile.levels, level_columns);
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
  j["processes"] = records_json(profile.by_process);
  j["rows"] = records_json(view.lines, profile, options);
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

std::string windows_to_json(const model::Profile& profile) {
  Json j = Json::object();
  j["schema"] = "jouleprof.windows/1";
  j["simulated"] = profile.simulated;
  j["windows"] = records_json(profile.windows, profile);
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
