#include "session/machine/machine_service.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/process/threads.h"
#include "session/machine/own_cost.h"
#include "session/machine/service_state.h"
#include "session/sampling/visible_devices.h"
#include "spans/procs/identity.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using model::DomainKind;

constexpr std::uint64_t kFirstTicks = 12;
constexpr Duration kHistory = 30s;
constexpr Duration kRemembered = 60s;  // of committed energies
constexpr Duration kLongestWait = 3s;  // for sensors to report a tick
constexpr Duration kPoll = 20ms;
constexpr Duration kAskAgain = 100ms;
constexpr std::size_t kMostWarnings = 100;

bool is_divided(const model::Domain& domain) {
  return !domain.parent && (domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu ||
                            domain.kind == DomainKind::kDram);
}

}  // namespace

// The driver keeps some seconds of processes' use.
Duration MachineService::process_period() { return 5s; }

Result<std::unique_ptr<MachineService>> MachineService::open(
    ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  const auto joined = joined_domains(meters);
  const auto selected = select_devices(joined, options.devices);
  if (!selected) return tl::unexpected(selected.error());
  std::map<model::DomainId, bool> keep;
  for (std::size_t i = 0; i < joined.size(); ++i) keep[joined[i].id] = (*selected)[i];
  Sampler sampler(std::move(meters), std::min(options.tick, process_period()),
                  [&keep](const model::Domain& domain) { return keep[domain.id]; });
  auto domains = sampler.domains();
  std::unique_ptr<MachineService> service(
      new MachineService(std::move(options), std::move(sampler), std::move(domains)));
  service->offered_ = joined;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    if ((*selected)[i]) continue;
    service->offered_[i].unavailable_reason =
        "the service that shares its sensors does not measure it (its option --devices)";
  }
  return service;
}

MachineService::MachineService(ServiceOptions options, Sampler sampler,
                               std::vector<model::Domain> domains)
    : options_(std::move(options)),
      live_(domains, sampler.sensors(), kHistory),
      uses_(domains),
      sampling_(std::move(sampler), domains, options_.sink,
                [this](const Sampled& sampled) {
                  live_.append(sampled.readings);
                  uses_.append(sampled.gpu_processes);
                  if (share_) share_->append(sampled);
                }),
      processes_(options_.root),
      kube_names_(options_.kube_logs),
      accounts_(domains.size(), options_.accounts),
      edges_(domains.size()),
      in_pid_namespace_(spans::in_pid_namespace(options_.root)),
      boot_(spans::boot_id(options_.root / "proc")) {
  windows_.on_end([this] {
    const std::lock_guard lock(mutex_);
    has_ended_window_ = true;
    woken_.notify_all();
  });
  state_.domains.resize(domains.size());
  for (std::size_t d = 0; d < domains.size(); ++d) {
    state_.domains[d].divided = is_divided(domains[d]);
  }
}

void MachineService::run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mutex_);
    woken_.notify_all();
  });
  state_.started = ClockPoint::now();
  cpu_at_begin_ = own_cpu_time();
  {
    const std::lock_guard lock(known_);
    state_.snapshot = live_.snapshot(state_.started, state_.started.host);
    restore();
    analysis::follow_day(state_.day, state_.started.real, accounts_.domains());
  }
  if (options_.sink != nullptr) sampling_.batch.run = options_.run;
  sampling_.start();
  HostTime next = HostClock::now();
  while (!stop.stop_requested()) {
    tick(stop);
    const HostTime now = HostClock::now();
    while (next <= now) next += time_to_next_tick();
    wait_for_tick(next, stop);
  }
  sampling_.stop(options_.patience);
  share_.reset();
  (void)sampling_.finish();
}

Duration MachineService::time_to_next_tick() const {
  const bool is_lively =
      state_.ticks < kFirstTicks || (options_.is_watched && options_.is_watched());
  return is_lively ? std::min(options_.tick, options_.lively_tick) : options_.tick;
}

void MachineService::read(const Reader& reader) const {
  const std::lock_guard lock(known_);
  reader(state_, accounts_);
}

void MachineService::wait_until(HostTime t, const std::stop_token& stop) {
  while (!stop.stop_requested() && HostClock::now() < t) {
    const HostTime next = std::min(t, serve_programs());
    std::unique_lock lock(mutex_);
    woken_.wait_until(lock, steady(next), [&] { return stop.stop_requested() || is_asked_; });
    is_asked_ = false;
  }
}

void MachineService::wait_for_tick(HostTime t, const std::stop_token& stop) {
  while (!stop.stop_requested() && HostClock::now() < t) {
    const HostTime next = std::min(t, serve_programs());
    {
      std::unique_lock lock(mutex_);
      woken_.wait_until(lock, steady(next),
                        [&] { return stop.stop_requested() || has_ended_window_ || is_asked_; });
      is_asked_ = false;
      if (!std::exchange(has_ended_window_, false)) continue;
    }
    settle_windows(stop);
  }
}

void MachineService::settle_windows(const std::stop_token& stop) {
  for (const HostTime t : windows_.take_marks()) live_.ledger().mark(t);
  const auto wanted = windows_.wanted();
  if (!wanted) return;
  wait_for_sensors(*wanted, stop);
  if (!stop.stop_requested()) windows_.settle(*wanted, live_.ledger());
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
  settle_windows(stop);
  wait_for_sensors(at, stop);
  if (stop.stop_requested()) return;
  {
    const std::lock_guard lock(known_);
    map_jobs(division);
    name_pods();
    accounts_.begin_tick(at, division.workers);
    for (std::size_t d = 0; d < edges_.size(); ++d) charge(d, at, division);
    describe(at);
  }
  last_tick_ = at;
  live_.ledger().tidy(at);
  windows_.tidy(at);
  live_.ledger().forget_before(std::min(at - kRemembered, windows_.oldest().value_or(at)));
  uses_.end_tick();
  uses_.forget_before(at - kRemembered);
  sampling_.watch_clock();
  sampling_.flush();
  save();
  if (options_.on_tick) options_.on_tick(state_, accounts_);
}

void MachineService::restore() {
  if (options_.state.empty()) return;
  const auto restored = restore_service_state(options_.state, boot_, state_, accounts_);
  if (!restored) {
    sampling_.warn(restored.error().message + "; the counters begin at zero");
  }
}

// Before the tick is shown: a counter that was read never falls, even if the service is killed.
void MachineService::save() {
  if (options_.state.empty()) return;
  const auto saved = save_service_state(options_.state, state_, accounts_, boot_);
  if (!saved) sampling_.warn("the counters are not kept: " + saved.error().message);
}

void MachineService::describe(HostTime at) {
  const ClockPoint now = ClockPoint::now();
  state_.snapshot = live_.snapshot(now, last_tick_ == HostTime{} ? at : last_tick_);
  state_.now = at;
  state_.cost = {own_cpu_time() - cpu_at_begin_, now.host - state_.started.host,
                 own_resident_bytes()};
  ++state_.ticks;
  analysis::follow_day(state_.day, now.real, accounts_.domains());
  state_.warnings.clear();
  for (const auto& warning : sampling_.warnings()) {
    if (state_.warnings.size() == kMostWarnings) break;
    state_.warnings.push_back(warning.text);
  }
}

}  // namespace jouleprof::session
