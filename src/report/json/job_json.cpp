#include "report/job.h"
#include "report/json/costs_json.h"
#include "report/json/json_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr const char* kSchema = "jouleprof.job/1";

void add_energy(Json& to, const std::optional<model::Measurement>& m) {
  const auto joules = [&](Energy model::Measurement::*member) {
    return m ? joules_json((*m).*member) : Json(nullptr);
  };
  to["energy_joules"] = joules(&model::Measurement::energy);
  to["error_joules"] = joules(&model::Measurement::error);
  to["repeatability_joules"] = joules(&model::Measurement::repeatability);
  to["provenance"] = m ? model::to_string(m->provenance) : "unavailable";
}

Json host_json(const analysis::JobHost& host) {
  Json j;
  j["host"] = text_json(host.host);
  j["boot_id"] = text_json(host.boot_id);
  j["recordings"] = host.recordings;
  j["start_time"] = host.began ? Json(utc_text(*host.began)) : Json(nullptr);
  j["recorded_seconds"] = seconds_json(host.covered);
  j["clock_change_seconds"] = seconds_json(host.clock_change);
  add_energy(j, host.total);
  j["domains"] = Json::array();
  for (const auto& domain : host.domains) {
    Json d;
    d["name"] = domain.label;
    d["identity"] = domain.identity;
    d["counted"] = domain.is_counted;
    add_energy(d, domain.energy);
    d["reason"] = domain.energy ? Json(nullptr) : text_json(domain.reason);
    j["domains"].push_back(std::move(d));
  }
  return j;
}

Json rank_json(const analysis::JobRank& rank) {
  Json j;
  j["rank"] = optional_json(rank.rank.global);
  j["local_rank"] = optional_json(rank.rank.local);
  j["world_size"] = optional_json(rank.rank.world_size);
  j["launcher"] = text_json(rank.rank.launcher);
  j["job"] = text_json(rank.rank.job);
  j["step"] = text_json(rank.rank.step);
  j["host"] = text_json(rank.host);
  j["recording"] = rank.recording;
  j["seconds"] = seconds_json(rank.length);
  j["cpu_seconds"] = optional_json(rank.cpu_time, seconds_json);
  j["dynamic_joules"] = optional_json(rank.energy, joules_json);
  j["held_joules"] = optional_json(rank.held, joules_json);
  j["kernels_joules"] = optional_json(rank.kernels, joules_json);
  j["idle_between_launches_joules"] = optional_json(rank.idle_between, joules_json);
  const auto part = [&](const std::string& name, const std::optional<Duration>& time,
                        const std::optional<model::Measurement>& m) {
    j[name + "_seconds"] = optional_json(time, seconds_json);
    j[name + "_joules"] = m ? joules_json(m->energy) : Json(nullptr);
    j[name + "_error_joules"] = m ? joules_json(m->error) : Json(nullptr);
  };
  part("collective_waiting", rank.waiting, rank.waiting_energy);
  part("collective_transfer", rank.transfer, rank.transfer_energy);
  j["kernel_seconds"] = optional_json(rank.kernel_time, seconds_json);
  j["imbalance_ratio"] = optional_json(rank.imbalance, number_json);
  return j;
}

}  // namespace

std::string job_to_json(const analysis::Job& job, const JobOptions& options) {
  Json j;
  j["schema"] = kSchema;
  j["recordings"] = job.recordings;
  j["start_time"] = job.began ? Json(utc_text(*job.began)) : Json(nullptr);
  j["elapsed_seconds"] = optional_json(job.elapsed, seconds_json);
  add_energy(j, job.total);
  j["domains_without_energy"] = job.without_energy;
  j["hosts"] = Json::array();
  for (const auto& host : job.hosts) j["hosts"].push_back(host_json(host));
  j["ranks"] = Json::array();
  for (const auto& rank : job.ranks) j["ranks"].push_back(rank_json(rank));
  const auto costs = costs_of(job, options.costs);
  j["costs"] = costs ? costs_json(*costs) : Json(nullptr);
  j["warnings"] = job.warnings;
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
