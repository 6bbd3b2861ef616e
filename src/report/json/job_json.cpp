#include "report/json/json_format.h"
#include "report/json/json_text.h"
#include "report/quantity.h"
#include "report/results/job.h"

namespace jouleprof::report {
namespace {

constexpr const char* kSchema = "jouleprof.job/2";

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
  Json j = Json::object();
  j["host"] = text_json(host.host);
  j["boot_id"] = text_json(host.boot_id);
  j["recordings"] = host.recordings;
  j["start_time"] = host.began ? Json(utc_text(*host.began)) : Json(nullptr);
  j["recorded_seconds"] = seconds_json(host.covered);
  j["clock_change_seconds"] = seconds_json(host.clock_change);
  if (const auto& clock = host.clock) {
    Json c = Json::object();
    c["reference"] = text_json(clock->reference);
    c["offset_seconds"] = number_json(clock->offset_seconds);
    c["drift_ratio"] = number_json(clock->drift);
    c["error_seconds"] = number_json(clock->error_seconds);
    c["residual_seconds"] = number_json(clock->residual_seconds);
    c["collectives"] = clock->calls;
    j["clock"] = std::move(c);
  } else {
    j["clock"] = nullptr;
  }
  add_energy(j, host.total);
  j["domains"] = Json::array();
  for (const auto& domain : host.domains) {
    Json d = Json::object();
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
  Json j = Json::object();
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

Json spread_json(const analysis::Spread& spread) {
  if (spread.of == 0) return nullptr;
  Json j = Json::object();
  j["of"] = spread.of;
  j["least"] = number_json(spread.least);
  j["mean"] = number_json(spread.mean);
  j["most"] = number_json(spread.most);
  j["standard_deviation"] = number_json(spread.deviation);
  j["most_in"] = text_json(spread.most_in);
  return j;
}

Json share_json(const analysis::JobShare& share) {
  Json j = Json::object();
  j["job"] = text_json(share.job);
  j["hosts"] = share.hosts;
  j["recordings"] = share.recordings;
  j["ranks"] = share.ranks;
  j["recorded_seconds"] = seconds_json(share.recorded);
  j["charged_joules"] = joules_json(share.charged());
  j["dynamic_joules"] = joules_json(share.dynamic);
  j["rest_joules"] = joules_json(share.rest);
  return j;
}

Json window_json(const analysis::JobWindow& window) {
  Json j = Json::object();
  j["name"] = text_json(window.name);
  j["count"] = window.count;
  add_energy(j, window.energy);
  j["rank_joules"] = spread_json(window.joules);
  j["rank_seconds"] = spread_json(window.seconds);
  return j;
}

Json layer_json(const analysis::JobLayer& layer) {
  Json j = Json::object();
  j["name"] = text_json(layer.name);
  j["launches"] = layer.launches;
  add_energy(j, layer.energy);
  j["recording_joules"] = spread_json(layer.joules);
  j["recording_seconds"] = spread_json(layer.seconds);
  return j;
}

Json rank_group_json(const analysis::RankGroup& group) {
  Json j = Json::object();
  j["launcher"] = text_json(group.launcher);
  j["job"] = text_json(group.job);
  j["step"] = text_json(group.step);
  j["world_size"] = group.world_size;
  j["present"] = group.present;
  j["missing"] = group.missing;
  j["repeated"] = group.repeated;
  return j;
}

template <class T>
Json list_json(const std::vector<T>& rows, Json (*row_json)(const T&)) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(row_json(row));
  return list;
}

}  // namespace

Result<std::string> job_to_json(const analysis::Job& job, const JobOptions& options) {
  Json j = Json::object();
  j["schema"] = kSchema;
  j["recordings"] = job.recordings;
  j["start_time"] = job.began ? Json(utc_text(*job.began)) : Json(nullptr);
  j["elapsed_seconds"] = optional_json(job.elapsed, seconds_json);
  j["aligned"] = job.is_aligned;
  add_energy(j, job.total);
  j["domains_without_energy"] = job.without_energy;
  j["hosts"] = list_json(job.hosts, host_json);
  j["ranks"] = list_json(job.ranks, rank_json);
  j["rank_groups"] = list_json(job.rank_groups, rank_group_json);
  j["jobs"] = list_json(job.shares, share_json);
  j["others_joules"] = joules_json(job.others);
  j["undivided_joules"] = joules_json(job.undivided);
  j["not_charged_joules"] = joules_json(job.not_charged);
  j["command_energy"] = command_json(job.command);
  j["machine_share_ratio"] = optional_json(options.rules.machine_share, number_json);
  j["slurm"] = Json::array();
  for (const auto& slurm : options.slurm) {
    j["slurm"].push_back({{"job", text_json(slurm.job)},
                          {"consumed_joules", optional_json(slurm.energy, joules_json)},
                          {"reason", slurm.energy ? Json(nullptr) : text_json(slurm.reason)}});
  }
  j["windows"] = list_json(job.windows, window_json);
  j["layers"] = list_json(job.layers, layer_json);
  const auto costs = costs_of(job, options.costs, options.whole_machine);
  j["costs"] = costs ? costs_json(*costs) : Json(nullptr);
  j["walls"] = Json::array();
  for (const auto& [host, log] : options.walls) {
    const auto wall = compare_wall(job, host, log);
    if (!wall) return forward_error(wall);
    j["walls"].push_back(wall_json(*wall));
  }
  j["warnings"] = job.warnings;
  return write_json(j) + '\n';
}

std::string merge_to_json(const std::string& output, std::size_t recordings,
                          const analysis::RankCensus::Found& found) {
  Json j = Json::object();
  j["schema"] = "jouleprof.merge/1";
  j["output"] = text_json(output);
  j["recordings"] = recordings;
  j["rank_groups"] = list_json(found.groups, rank_group_json);
  j["warnings"] = found.warnings;
  return write_json(j) + '\n';
}

}  // namespace jouleprof::report
