#include <optional>
#include <string>
#include <utility>

#include "model/window_sum.h"
#include "report/activity/activity.h"
#include "report/format/format.h"
#include "report/json/json_format.h"
#include "report/json/records.h"
#include "report/quantity.h"

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
  j["unrecorded_seconds"] =
      profile.unrecorded > Duration{} ? seconds_json(profile.unrecorded) : Json(nullptr);
  j["processes"] = records_json(profile.by_process);
  j["rows"] = records_json(view.lines, profile, options);
  j["rows_left_out"] = view.left_out;
  j["warnings"] = profile.warnings;
  return j;
}

template <class Record>
std::string csv_of(const std::vector<Record>& records, bool in_flight) {
  const auto row_of = [in_flight](const Record& record) {
    CsvColumns row;
    columns(record, in_flight, row);
    return row;
  };
  std::string csv = row_of({}).heading();
  for (const auto& record : records) csv += row_of(record).line();
  return csv;
}

}  // namespace

Json activity_document(const std::vector<ActivityProfile>& profiles,
                       const ActivityOptions& options) {
  Json document = Json::object();
  document["schema"] = kActivitySchema;
  document["by"] = to_string(options.by);
  document["devices"] = list_json(
      profiles, [&](const ActivityProfile& profile) { return profile_json(profile, options); });
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
  j["kinds"] = list_json(rank.kinds, [](const auto& kind) {
    Json k = Json::object();
    k["name"] = text_json(kind.name);
    add_times(k, kind);
    return k;
  });
  return j;
}

}  // namespace

std::string collectives_to_json(const model::CollectiveProfile& profile) {
  Json j = Json::object();
  j["schema"] = kCollectivesSchema;
  const auto* straggler = profile.straggler();
  j["slowest_rank"] = straggler != nullptr ? optional_json(straggler->rank.global) : Json(nullptr);
  j["end_spread_seconds"] = optional_json(profile.end_spread, seconds_json);
  j["ranks"] = list_json(profile.ranks, rank_json);
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

// `in_flight`: a proxy saw no batches, so that what is fixed in one is not known.
template <class Served>
void energy_columns(const Served& e, bool in_flight, Columns& column) {
  constexpr const char* kUnknown = "`reason`";
  column("energy_joules", e.known(e.energy),
         "active energy: its own work, and equal parts of what is fixed in each step", kUnknown);
  column("interval_joules", e.is_known() ? std::optional(Bounds{e.low(), e.high()}) : std::nullopt,
         "[lower, upper bound], 95 %, calibration and regression together", kUnknown);
  column(
      "calibration_joules", e.known(e.calibration),
      "half of the width of the interval that is the sensor's gain, the same way for all requests",
      kUnknown);
  column("regression_joules", e.known(e.regression),
         "half of the width of the interval that is the model of a step", kUnknown);
  column("marginal_joules", in_flight ? std::nullopt : e.known(e.marginal),
         "what would be saved without it; up to `energy_joules` reaches the choice of a rule",
         "a proxy sees no batches, or `reason`");
  column("prefill_joules", e.known(e.prefill), "of the energy: prefill", kUnknown);
  column("decode_joules", e.known(e.decode), "of the energy: decode", kUnknown);
  column("recomputed_joules", e.known(e.recomputed),
         "of the energy: computed again after a preemption", kUnknown);
  column("rejected_joules", e.known(e.rejected),
         "of the energy: speculative tokens that were rejected", kUnknown);
  column("joules_per_token", e.per_token(), "energy divided by tokens out",
         "no token came out; `reason`; or a part of its steps lies outside of `--from` and `--to`");
  column("idle_joules", e.known(e.idle_share),
         "not in the energy: rest and held in its steps, in equal parts", kUnknown);
  column("tokens_in", e.tokens_in, "tokens of the prompt");
  column("tokens_out", e.tokens_out, "tokens of the answer");
  column("tokens_computed", e.computed, "tokens computed, rejected and recomputed ones included");
  column("tokens_cached", e.cached, "tokens taken from the prefix cache");
  column("steps", e.steps, "steps that it was in");
  column("shared_with", e.shared_with, "other requests in its steps, mean over time", "",
         {.decimals = 3});
  column("reason", e.reason, "why the energy is not known", "it is known");
}

void columns(const model::RequestEnergy& r, bool in_flight, Columns& column) {
  column("request", r.id, "the engine's id of the request");
  column("model", r.model, "its model", "it was not given");
  column("tenant", r.tenant, "its tenant or user", "it was not given");
  column("pid", r.pid, "the process that served it");
  energy_columns(r, in_flight, column);
  column("prefix_of", r.filler, "the request that filled the prefix cache for it",
         "it is not known");
  column(
      "arrival_unix_nanoseconds",
      r.arrived ? std::optional(std::int64_t{r.arrived->time_since_epoch().count()}) : std::nullopt,
      "when it arrived, by the wall clock", "the recording has no wall clock");
  column("arrival_nanoseconds", r.arrival.time_since_epoch().count(), "CLOCK_MONOTONIC");
  column(
      "finish_nanoseconds",
      r.finish ? std::optional(std::int64_t{r.finish->time_since_epoch().count()}) : std::nullopt,
      "CLOCK_MONOTONIC", "it had not finished when the recording ended");
}

void columns(const model::TenantEnergy& t, bool in_flight, Columns& column) {
  column("tenant", t.tenant, "tenant or user", "it was not given");
  column("requests", t.requests, "number of requests");
  column("requests_without_energy", t.without_energy,
         "of the requests: their energy is not known, and not in the sums");
  energy_columns(t, in_flight, column);
}

void columns(const model::ServedBoard& b, bool, Columns& column) {
  column("device", b.domain.device, "the GPU");
  column("provenance", b.measured.provenance, "provenance of its energy");
  column("energy_joules", b.measured.energy,
         "measured: rest + held + between + requests + unattributed, exactly");
  column("interval_joules", bounds_of(b.measured), "[lower, upper bound], 95 %");
  column("rest_joules", b.rest, "at rest", "it is not known apart from held");
  column("held_joules", b.held, "held", "it is not known apart from rest");
  column("idle_joules", b.idle_levels, "rest and held together", "it is not known");
  constexpr const char* kUndivided = "the energy could not be divided: it is unattributed";
  const auto divided = [&b](auto value) {
    return b.is_divided ? std::optional(value) : std::nullopt;
  };
  column("between_joules", divided(b.between), "above held between steps: of no request",
         kUndivided);
  column("requests_joules", divided(b.requests), "of all requests", kUndivided);
  column("unattributed_joules", b.unattributed,
         "before the first and after the last step, and what steps do not explain");
  column("others_joules", b.others,
         "of the unattributed: what processes outside of the command used, or can have used");
  column("steps", b.steps, "steps on this GPU");
  column("busy_seconds", b.busy, "time in steps");
  column("explained_ratio", divided(b.explained), "of the variance of power", kUndivided);
  column("step_watts", divided(b.step_watts),
         "of the model: above idle while a step runs, without its work", kUndivided);
  column("joules_per_prefill_token", divided(b.joules_per_prefill_token),
         "of the model: own part of one", kUndivided);
  column("joules_per_decode_token", divided(b.joules_per_decode_token),
         "of the model: own part of one", kUndivided);
  column("fixed_joules", divided(b.fixed_joules), "of the model: not of any request's work, a step",
         kUndivided);
}

Json serving_document(const model::ServingProfile& profile, bool being_written) {
  Json j = Json::object();
  j["schema"] = "jouleprof.requests/1";
  j["simulated"] = profile.simulated;
  j["being_written"] = being_written;
  j["division"] =
      profile.in_flight ? "tokens in flight" : "own work and equal parts of what is fixed";
  j["boards"] = records_json(profile.boards, profile.in_flight);
  j["requests"] = records_json(profile.requests, profile.in_flight);
  j["tenants"] = records_json(profile.tenants, profile.in_flight);
  j["warnings"] = profile.warnings;
  return j;
}

std::string serving_to_json(const model::ServingProfile& profile, bool being_written) {
  return write_json(serving_document(profile, being_written)) + '\n';
}

std::string serving_to_csv(const model::ServingProfile& profile, const ServingOptions& options) {
  return options.by_tenant ? csv_of(profile.tenants, profile.in_flight)
                           : csv_of(profile.requests, profile.in_flight);
}

}  // namespace jouleprof::report
