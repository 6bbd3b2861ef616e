#include <optional>
#include <string>

#include "report/format/format.h"
#include "report/json/json_format.h"
#include "report/json/records.h"

namespace jouleprof::report {
namespace {

std::optional<double> per_token(const model::ServedEnergy& e) {
  if (e.tokens_out == 0) return std::nullopt;
  return e.energy.joules() / static_cast<double>(e.tokens_out);
}

}  // namespace

// `in_flight`: a proxy saw no batches, so that what is fixed in one is not known.
void columns(const model::ServedEnergy& e, bool in_flight, Columns& column) {
  column("energy_joules", e.energy,
         "active energy: its own work, and equal parts of what is fixed in each step");
  column("interval_joules", Bounds{e.low(), e.high()},
         "[lower, upper bound], 95 %, calibration and regression together");
  column(
      "calibration_joules", e.calibration,
      "half of the width of the interval that is the sensor's gain, the same way for all requests");
  column("regression_joules", e.regression,
         "half of the width of the interval that is the model of a step");
  column("marginal_joules", in_flight ? std::nullopt : std::optional(e.marginal),
         "what would be saved without it; up to `energy_joules` reaches the choice of a rule",
         "a proxy sees no batches");
  column("prefill_joules", e.prefill, "of the energy: prefill");
  column("decode_joules", e.decode, "of the energy: decode");
  column("recomputed_joules", e.recomputed, "of the energy: computed again after a preemption");
  column("rejected_joules", e.rejected, "of the energy: speculative tokens that were rejected");
  column("joules_per_token", per_token(e), "energy divided by tokens out", "no token came out");
  column("idle_joules", e.idle_share,
         "not in the energy: rest and held in its steps, in equal parts");
  column("tokens_in", e.tokens_in, "tokens of the prompt");
  column("tokens_out", e.tokens_out, "tokens of the answer");
  column("tokens_computed", e.computed, "tokens computed, rejected and recomputed ones included");
  column("tokens_cached", e.cached, "tokens taken from the prefix cache");
  column("steps", e.steps, "steps that it was in");
  column("shared_with", e.shared_with, "other requests in its steps, mean over time", "",
         {.decimals = 3});
}

void columns(const model::RequestEnergy& r, bool in_flight, Columns& column) {
  column("request", r.id, "the engine's id of the request");
  column("model", r.model, "its model", "it was not given");
  column("tenant", r.tenant, "its tenant or user", "it was not given");
  column("pid", r.pid, "the process that served it");
  columns(static_cast<const model::ServedEnergy&>(r), in_flight, column);
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
  columns(static_cast<const model::ServedEnergy&>(t), in_flight, column);
}

void columns(const model::ServedBoard& b, bool, Columns& column) {
  column("device", b.domain.device, "the GPU");
  column("provenance", b.measured.provenance, "provenance of its energy");
  column("energy_joules", b.measured.energy,
         "measured: rest + held + between + requests + unattributed, exactly");
  column("interval_joules", bounds_of(b.measured), "[lower, upper bound], 95 %");
  column("rest_joules", b.rest, "at rest", "it is not known apart from held");
  column("held_joules", b.held, "held", "it is not known apart from rest");
  column("idle_joules", b.idle_levels, "rest and held together");
  column("between_joules", b.between, "above held between steps: of no request");
  column("requests_joules", b.requests, "of all requests");
  column("unattributed_joules", b.unattributed,
         "before the first and after the last step, and what steps do not explain");
  column("others_joules", b.others,
         "of the unattributed: what processes outside of the command used, or can have used");
  column("steps", b.steps, "steps on this GPU");
  column("busy_seconds", b.busy, "time in steps");
  column("explained_ratio", b.explained, "of the variance of power");
  column("step_watts", b.step_watts,
         "of the model: above idle while a step runs, without its work");
  column("joules_per_prefill_token", b.joules_per_prefill_token, "of the model: own part of one");
  column("joules_per_decode_token", b.joules_per_decode_token, "of the model: own part of one");
  column("fixed_joules", b.fixed_joules, "of the model: not of any request's work, a step");
}

namespace {

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

Json serving_document(const model::ServingProfile& profile, bool being_written) {
  Json j = Json::object();
  j["schema"] = "jouleprof.requests/1";
  j["simulated"] = profile.provenance == model::Provenance::kSimulated;
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
