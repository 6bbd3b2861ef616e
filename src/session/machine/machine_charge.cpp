// How MachineService divides the energy of a tick.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/machine/machine_service.h"

namespace jouleprof::session {
namespace {

using model::DomainKind;

constexpr int kMostWaited = 5;  // ticks, for the counter of a device that came back
constexpr Duration kUseAge = std::chrono::seconds{10};  // of the last report of a process's use

}  // namespace

MachineService::Division MachineService::divide() {
  Division out;
  out.looked_at = HostClock::now();
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
  if (look->hides_processes) {
    sampling_.warn(
        "/proc hides other users' processes (hidepid): their energy belongs to no process, user, "
        "container or job here; run the service with CAP_SYS_PTRACE, or mount /proc with "
        "hidepid=0");
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
  out.listed = out.workers.size();
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
    if (job) {
      analysis::Worker of_job;
      of_job.owner.job = *job;
      division.mapped[d] = worker_of(of_job, division);
    }
    for (auto& holder : uses_.holders(d, HostClock::now() - kUseAge)) {
      auto& worker = division.workers[worker_of(holder.worker, division)];
      worker.holds_gpu = true;
      if (job && worker.owner.job.empty()) worker.owner.job = *job;
      holder.worker = worker;
      state_.holders.push_back(std::move(holder));
    }
  }
}

// The place of a worker in the tick, to which it is added if it has ended or began after the look.
std::size_t MachineService::worker_of(const analysis::Worker& worker, Division& division) {
  const auto found = division.by_pid.find(worker.pid);
  if (worker.process != 0 && found != division.by_pid.end() &&
      division.workers[found->second].process == worker.process) {
    return found->second;
  }
  for (std::size_t w = division.listed; w < division.workers.size(); ++w) {
    const auto& added = division.workers[w];
    if (added.process == worker.process &&
        (worker.process != 0 || added.owner.job == worker.owner.job))
      return w;
  }
  division.workers.push_back(worker);
  division.cpu_time.push_back(0);
  return division.workers.size() - 1;
}

// Who used each GPU since its last edge. Workers are added for processes that ended in the
// meantime.
void MachineService::find_uses(HostTime at, Division& division) {
  if (division.known) {
    const auto used = [&](const analysis::Worker& worker) -> std::optional<double> {
      const auto found = division.by_pid.find(worker.pid);
      if (found == division.by_pid.end()) return std::nullopt;
      const bool is_same = division.workers[found->second].process == worker.process;
      return is_same ? std::optional(division.cpu_time[found->second]) : std::nullopt;
    };
    uses_.append_cpu_times(looked_at_, division.looked_at, used);
    looked_at_ = division.looked_at;
  }
  const auto& domains = sampling_.domains();
  for (std::size_t d = 0; d < domains.size(); ++d) {
    if (domains[d].kind != DomainKind::kGpu || domains[d].parent || !edges_[d].at ||
        in_pid_namespace_)
      continue;
    const auto mapped = division.mapped.find(d);
    for (const auto& slice : uses_.slices(d, *edges_[d].at, at)) {
      auto& use = division.uses[d].emplace_back(Division::Use{slice.begin, slice.end, {}, {}});
      const auto claim_of = [&](const std::vector<std::size_t>& processes, double weight) {
        analysis::WorkerClaim out;
        out.weight = weight;
        for (const std::size_t process : processes) {
          if (process == analysis::kUnidentified) {
            // It belongs to the job that was given the board.
            if (mapped == division.mapped.end())
              out.is_unidentified = true;
            else
              out.workers.push_back(mapped->second);
            continue;
          }
          const std::size_t w = worker_of(uses_.worker(process), division);
          division.workers[w].holds_gpu = true;
          auto& owner = division.workers[w].owner;
          if (mapped != division.mapped.end() && owner.job.empty()) {
            owner.job = division.workers[mapped->second].owner.job;
          }
          out.workers.push_back(w);
        }
        return out;
      };
      for (const auto& claim : slice.claims)
        use.claims.push_back(claim_of(claim.candidates, claim.weight));
      for (const std::size_t process : slice.holders)
        use.holders.push_back(claim_of({process}, 1.0));
      // The scheduler gave the board to one job.
      if (use.claims.empty() && mapped != division.mapped.end()) {
        use.claims.push_back({{mapped->second}, false, 1.0});
      }
    }
  }
}

// The parts of a GPU's energy by who used it; empty where nothing is known of that.
std::vector<analysis::ChargePart> MachineService::parts_of(std::size_t domain, HostTime begin,
                                                           HostTime at,
                                                           const std::optional<Power>& rest,
                                                           const Division& division) {
  std::vector<analysis::ChargePart> parts;
  const auto level =
      options_.held ? options_.held(sampling_.domains()[domain]) : std::optional<Power>();
  const auto found = division.uses.find(domain);
  if (found == division.uses.end()) return parts;
  for (const auto& use : found->second) {
    const HostTime from = std::max(use.begin, begin);
    const HostTime to = std::min(use.end, at);
    if (from >= to) continue;
    const auto energy = live_.ledger().energy_of(domain, from, to);
    if (!energy) return {};
    const auto at_rest = rest ? std::optional(*rest * (to - from)) : std::nullopt;
    Energy held;
    if (level && at_rest && !use.holders.empty()) {
      const Energy above = std::max(energy->energy - *at_rest, Energy{});
      held = std::clamp(*level * (to - from) - *at_rest, Energy{}, above);
    }
    parts.push_back({energy->energy - held, at_rest, use.claims});
    if (held > Energy{}) parts.push_back({held, std::nullopt, use.holders});
  }
  return parts;
}

void MachineService::charge(std::size_t domain, HostTime at, const Division& division) {
  auto& edge = edges_[domain].at;
  auto& state = state_.domains[domain];
  auto& ledger = live_.ledger();
  const bool reported = state.reported = ledger.knows(domain, at);
  if (!reported) {
    // One that reports no more is charged up to its last readings, once.
    if (!edge || watched_[domain].silent_ticks + 1 != kSilentTicks) return;
    const auto until = ledger.known_until(domain);
    if (!until || *until <= *edge) return;
    at = *until;
  }
  if (!edge) {
    count_by_counter(domain, at,
                     options_.continued ? "until it reported again" : "between two services");
    edge = at;
    return;
  }
  auto energy = ledger.energy_of(domain, *edge, at);
  HostTime begin = *edge;
  if (!energy && !reported) return;
  if (!energy) {
    // Sensors that stand still are waited for no longer, and have reported nothing.
    state.reported = false;
    watched_[domain].failure = energy.error().message;
    // Readings are missing since then. Without the counter's own word of that time the count goes
    // on from the tick before, or from here.
    int& waited = edges_[domain].waited;
    if (state.counter && !ledger.counter_at(domain, at) && waited < kMostWaited) {
      ++waited;
      return;
    }
    waited = 0;
    edge = at;
    state.before = state.counter;
    if (count_by_counter(domain, at, "without readings")) {
      state.reported = true;
      state.reason.clear();
      return;
    }
    begin = last_tick_;
    energy = ledger.energy_of(domain, begin, at);
    if (!energy) {
      state.reason = energy.error().message;
      return;
    }
  }
  edge = at;
  state.reported = reported;
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
  if (division.known && state.divided) {
    if (what.kind == DomainKind::kGpu) {
      charge.parts = parts_of(domain, begin, at, rest, division);
    } else if (begin == last_tick_) {
      weights = division.cpu_time;
      weights.resize(division.workers.size());
      charge.others = division.others;
    }
  }
  charge.weights = weights;
  accounts_.charge(charge);
  if (!reported) mark_counter(domain, at);
}

}  // namespace jouleprof::session
