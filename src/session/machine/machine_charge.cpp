// How MachineService divides the energy of a tick.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/machine/machine_service.h"

namespace jouleprof::session {
namespace {

using model::DomainKind;

constexpr Duration kUseAge = std::chrono::seconds{10};  // of the last report of a process's use

}  // namespace

MachineService::Division MachineService::divide() {
  Division out;
  auto look = processes_.look();
  if (!look) {
    sampling_.warn("energy is not divided among processes: " + look.error().message);
    return out;
  }
  if (look->hides_owners) {
    sampling_.warn(
        "some processes belong to control groups that this tool's cgroup namespace hides: their "
        "containers and jobs are unknown; run the service in the host's cgroup namespace");
  }
  if (!look->unknown_job.empty()) {
    sampling_.warn(fmt::format(
        "the processes in {} belong to a scheduler's job that this version cannot name; "
        "name the jobs of GPUs with --job-mapping-dir",
        look->unknown_job));
  }
  for (auto& p : look->processes) {
    out.by_pid[p.pid] = out.workers.size();
    out.workers.push_back({p.id, p.pid, std::move(p.name), std::move(p.owner)});
    out.cpu_time.push_back(seconds(p.cpu_time));
  }
  for (auto& u : look->unlisted) {
    out.workers.push_back({0, 0, {}, std::move(u.owner)});
    out.cpu_time.push_back(seconds(u.cpu_time));
  }
  out.others = seconds(look->others);
  out.memory_used_bytes = look->machine.memory_used_bytes;
  live_.append(std::vector{look->machine});
  out.known = true;
  return out;
}

void MachineService::map_jobs(Division& division) {
  state_.memory_used_bytes = division.memory_used_bytes;
  state_.allocations.clear();
  state_.holders.clear();
  if (in_pid_namespace_) {
    sampling_.warn(
        "the driver names processes by the machine's pids, which this container does not show: GPU "
        "energy is not divided among processes; run the service in the host's PID namespace");
  }
  const auto& domains = sampling_.domains();
  for (std::size_t d = 0; d < domains.size(); ++d) {
    if (domains[d].kind != DomainKind::kGpu || domains[d].parent) continue;
    const auto index = model::gpu_index(domains[d]);
    for (const auto& entry : jobs_.all()) {
      if (entry.gpu != domains[d].uuid && (!index || entry.gpu != std::to_string(*index))) continue;
      for (const auto& job : entry.jobs) state_.allocations.push_back({d, entry.instance, job});
    }
    if (in_pid_namespace_) continue;
    const auto job = jobs_.only_job(index, domains[d].uuid);
    for (const auto& use : uses_.of(d, HostClock::now() - kUseAge)) {
      const auto at = division.by_pid.find(use.pid);
      if (at == division.by_pid.end()) continue;
      auto& worker = division.workers[at->second];
      worker.holds_gpu = true;
      if (job && worker.owner.job.empty()) worker.owner.job = *job;
      state_.holders.push_back({d, worker, use.compute_utilisation, use.memory_bytes});
    }
  }
}

void MachineService::charge(std::size_t domain, HostTime at, const Division& division) {
  auto& edge = edges_[domain].at;
  auto& state = state_.domains[domain];
  auto& ledger = live_.ledger();
  state.provenance = ledger.provenance(domain);
  state.reported = ledger.knows(domain, at);
  if (!state.reported) return;
  if (!edge) {
    count_between_services(domain, at);
    edge = at;
    return;
  }
  auto energy = ledger.energy_of(domain, *edge, at);
  HostTime begin = *edge;
  if (!energy) {
    // Readings are missing since then: the count goes on from the tick before, or from here.
    if (state.counted) ++state.gaps;
    edge = at;
    begin = last_tick_;
    energy = ledger.energy_of(domain, begin, at);
    if (!energy) {
      state.reason = energy.error().message;
      return;
    }
  }
  edge = at;
  state.counted = true;
  state.reason.clear();

  const auto& what = sampling_.domains()[domain];
  analysis::DomainCharge charge;
  charge.domain = domain;
  charge.energy = energy->energy;
  charge.interval = at - begin;
  const auto rest = options_.rest ? options_.rest(what) : std::nullopt;
  if (rest) charge.rest = *rest * (at - begin);
  std::vector<double> weights;
  if (division.known && begin == last_tick_ && state.divided) {
    if (what.kind == DomainKind::kGpu) {
      const auto uses =
          in_pid_namespace_ ? std::vector<model::GpuProcessUse>{} : uses_.of(domain, at - kUseAge);
      const auto by_use = weights_of(uses);
      if (!by_use.empty()) weights.resize(division.workers.size());
      for (std::size_t i = 0; i < by_use.size(); ++i) {
        const auto found = division.by_pid.find(uses[i].pid);
        (found == division.by_pid.end() ? charge.others : weights[found->second]) += by_use[i];
      }
    } else {
      weights = division.cpu_time;
      charge.others = division.others;
    }
  }
  charge.weights = weights;
  accounts_.charge(charge);
}

}  // namespace jouleprof::session
