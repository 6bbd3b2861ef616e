#include "session/machine/machine_service.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "session/sampling/threads.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using model::DomainKind;

constexpr Duration kHistory = 30s;
constexpr Duration kRemembered = 60s;    // of committed energies
constexpr Duration kLongestWait = 3s;    // for sensors to report a tick
constexpr Duration kProcessPeriod = 5s;  // the driver keeps some seconds of processes' use
constexpr Duration kUseAge = 10s;        // of the last report of a process's use
constexpr Duration kPoll = 20ms;
constexpr Duration kAskAgain = 100ms;
constexpr std::size_t kMostWarnings = 100;

Duration of(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
}

Duration own_cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return of(usage.ru_utime) + of(usage.ru_stime);
}

std::uint64_t own_resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  const auto fields = text ? split_blanks(*text) : std::vector<std::string_view>{};
  const auto pages = fields.size() > 1 ? parse_integer(fields[1]) : std::nullopt;
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return pages ? static_cast<std::uint64_t>(*pages) * page : 0;
}

bool is_divided(const model::Domain& domain) {
  return !domain.parent && (domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu ||
                            domain.kind == DomainKind::kDram);
}

}  // namespace

Result<std::unique_ptr<MachineService>> MachineService::open(
    ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  const auto joined = joined_domains(meters);
  const auto selected = select_devices(joined, options.devices);
  if (!selected) return tl::unexpected(selected.error());
  std::map<model::DomainId, bool> keep;
  for (std::size_t i = 0; i < joined.size(); ++i) keep[joined[i].id] = (*selected)[i];
  Sampler sampler(std::move(meters), std::min(options.tick, kProcessPeriod),
                  [&keep](const model::Domain& domain) { return keep[domain.id]; });
  auto domains = sampler.domains();
  return std::unique_ptr<MachineService>(
      new MachineService(std::move(options), std::move(sampler), std::move(domains)));
}

MachineService::MachineService(ServiceOptions options, Sampler sampler,
                               std::vector<model::Domain> domains)
    : options_(std::move(options)),
      live_(domains, sampler.sensors(), kHistory),
      uses_(domains),
      sampling_(std::move(sampler), domains, nullptr,
                [this](const Sampled& sampled) {
                  live_.append(sampled.readings);
                  uses_.append(sampled.gpu_processes);
                }),
      processes_(options_.root),
      accounts_(domains.size(), options_.accounts),
      edges_(domains.size()),
      in_pid_namespace_(spans::in_pid_namespace(options_.root)) {
  state_.domains.resize(domains.size());
}

void MachineService::run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mutex_);
    woken_.notify_all();
  });
  state_.started = ClockPoint::now();
  cpu_at_begin_ = own_cpu_time();
  sampling_.start();
  HostTime next = HostClock::now();
  while (!stop.stop_requested()) {
    tick(stop);
    const HostTime now = HostClock::now();
    while (next <= now) next += options_.tick;
    wait_until(next, stop);
  }
  sampling_.stop(options_.patience);
  (void)sampling_.finish();
}

void MachineService::wait_until(HostTime t, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  woken_.wait_until(lock, steady(t), [&stop] { return stop.stop_requested(); });
}

// Until all sensors have reported what was used up to `t`.
void MachineService::wait_for_sensors(HostTime t, const std::stop_token& stop) {
  auto& ledger = live_.ledger();
  const HostTime ready = t + ledger.delay();
  const HostTime deadline = t + std::min(kLongestWait, options_.tick * 4 / 5);
  HostTime ask{};
  for (;;) {
    sampling_.collect();
    const HostTime now = HostClock::now();
    if (ledger.knows(t, now) || now >= deadline || stop.stop_requested()) return;
    if (now < ready) {
      wait_until(std::min(ready, deadline), stop);
      continue;
    }
    if (now >= ask) {
      sampling_.read_soon();
      ask = now + kAskAgain;
    }
    wait_until(now + kPoll, stop);
  }
}

void MachineService::tick(const std::stop_token& stop) {
  Division division = divide();
  const HostTime at = HostClock::now();
  wait_for_sensors(at, stop);
  if (stop.stop_requested()) return;
  map_jobs(division);
  accounts_.begin_tick(at, division.workers);
  for (std::size_t d = 0; d < edges_.size(); ++d) charge(d, at, division);
  describe(at);
  last_tick_ = at;
  live_.ledger().tidy(at);
  live_.ledger().forget_before(at - kRemembered);
  uses_.end_tick();
  uses_.forget_before(at - kRemembered);
  sampling_.watch_clock();
  sampling_.flush();
  if (options_.on_tick) options_.on_tick(state_, accounts_);
}

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
  live_.append(std::vector{look->machine});
  out.known = true;
  return out;
}

void MachineService::map_jobs(Division& division) {
  state_.allocations.clear();
  state_.holders.clear();
  if (!options_.job_mapping.empty()) {
    if (const auto read = jobs_.read(options_.job_mapping); !read) {
      sampling_.warn("the jobs of GPUs are unknown: " + read.error().message);
    }
  }
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
  state.divided = is_divided(sampling_.domains()[domain]);
  state.reported = ledger.knows(domain, at);
  if (!state.reported) return;
  if (!edge) {
    edge = at;
    state.counted = true;
    return;
  }
  auto energy = ledger.energy_of(domain, *edge, at);
  HostTime begin = *edge;
  if (!energy) {
    // Readings are missing since then: the count goes on from the tick before, or from here.
    ++state.gaps;
    edge = at;
    begin = last_tick_;
    energy = ledger.energy_of(domain, begin, at);
    if (!energy) return;
  }
  edge = at;

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

void MachineService::describe(HostTime at) {
  const ClockPoint now = ClockPoint::now();
  state_.snapshot = live_.snapshot(now, last_tick_ == HostTime{} ? at : last_tick_);
  state_.now = at;
  state_.cost = {own_cpu_time() - cpu_at_begin_, now.host - state_.started.host,
                 own_resident_bytes()};
  ++state_.ticks;
  state_.warnings.clear();
  for (const auto& warning : sampling_.warnings()) {
    if (state_.warnings.size() == kMostWarnings) break;
    state_.warnings.push_back(warning.text);
  }
}

}  // namespace jouleprof::session
