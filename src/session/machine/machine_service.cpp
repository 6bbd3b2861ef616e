#include "session/machine/machine_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "jouleprof/units.h"
#include "model/device/sensor.h"
#include "session/machine/service_state.h"
#include "session/sampling/visible_devices.h"
#include "spans/procs/procfs.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using model::DomainKind;

// --- What this process has used so far ---

// 0: unknown.
std::uint64_t own_resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  const auto fields = text ? split_blanks(*text) : std::vector<std::string_view>{};
  const auto pages = fields.size() > 1 ? parse_integer(fields[1]) : std::nullopt;
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return pages ? static_cast<std::uint64_t>(*pages) * page : 0;
}

// --- The ticks of the service ---

constexpr std::uint64_t kFirstTicks = 12;
constexpr Duration kHistory = 30s;
constexpr Duration kRemembered = 60s;  // of committed energies
constexpr Duration kLongestWait = 3s;  // for sensors to report a tick
constexpr Duration kPoll = 20ms;
constexpr Duration kListPatience = 300ms;  // with a list of the processes on the devices
constexpr Duration kAskAgain = 100ms;
constexpr Duration kJobPeriod = 1s;          // between looks whether the jobs of GPUs have changed
constexpr Duration kFolderPatience = 500ms;  // with the folders of jobs and pods
constexpr Duration kLongestUnkept = 1min;    // of counters that are not shown
constexpr std::size_t kMostWarnings = 100;
constexpr double kMostWatts = 5000;         // the limit of a device that states none
constexpr Duration kLongestGap = 24h * 30;  // between two services

FolderReader<spans::JobMapping>::Read reader_of_jobs(const std::filesystem::path& folder) {
  if (folder.empty()) return nullptr;
  return [folder]() -> Result<spans::JobMapping> {
    spans::JobMapping jobs;
    if (auto read = jobs.read(folder); !read) return forward_error(read);
    return jobs;
  };
}

FolderReader<model::KubeNames>::Read reader_of_names(const std::filesystem::path& folder) {
  if (folder.empty()) return nullptr;
  return [names = std::make_shared<spans::KubeNameFolder>(folder)]() -> Result<model::KubeNames> {
    if (auto read = names->read(); !read) return forward_error(read);
    return names->names();
  };
}

bool is_divided(const model::Domain& domain) {
  return !domain.parent && (domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu ||
                            domain.kind == DomainKind::kDram);
}

}  // namespace

// A process that lives for a second is listed. Lane makes it rarer where the list costs too much.
Duration MachineService::process_period() { return 1s; }

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
  for (std::size_t i = 0; i < joined.size(); ++i) {
    auto& offered = service->offered_.emplace_back(joined[i], (*selected)[i]);
    if (offered.measured) continue;
    offered.domain.unavailable_reason =
        "the service that shares its sensors does not measure it (its option --devices)";
  }
  return service;
}

MachineService::MachineService(ServiceOptions options, Sampler sampler,
                               std::vector<model::Domain> domains)
    : options_(std::move(options)),
      live_(domains, sampler.sensors(), kHistory),
      uses_(domains, sampler.sensors(), [this](pid_t pid) { return find(pid); }),
      sampling_(std::move(sampler), domains, options_.sink,
                [this](const Sampled& sampled) {
                  live_.append(sampled.readings);
                  note_failures(sampled.readings.failures);
                  uses_.append(sampled);
                  if (share_) share_->append(sampled);
                }),
      processes_(options_.root),
      job_folder_(options_.job_mapping.string(), reader_of_jobs(options_.job_mapping)),
      kube_folder_(options_.kube_logs.string(), reader_of_names(options_.kube_logs)),
      accounts_(domains.size(), options_.accounts),
      edges_(domains.size()),
      in_pid_namespace_(spans::in_pid_namespace(options_.root)),
      boot_(spans::boot_id(options_.root / "proc")),
      windows_(options_.windows ? options_.windows : std::make_shared<MachineWindows>()),
      watched_(domains.size()) {
  windows_->on_end([this] {
    const std::lock_guard lock(mutex_);
    has_ended_window_ = true;
    woken_.notify_all();
  });
  if (!options_.state.empty()) file_.emplace(options_.state);
  state_.domains.resize(domains.size());
  for (std::size_t d = 0; d < domains.size(); ++d) {
    state_.domains[d].divided = is_divided(domains[d]);
    // A label of counters that go on from an earlier service: it is known before the first reading.
    state_.domains[d].provenance = live_.ledger().provenance(d);
  }
}

std::optional<GpuUses::Found> MachineService::find(pid_t pid) {
  auto found = processes_.find(pid);
  if (!found) return std::nullopt;
  auto& p = found->process;
  return GpuUses::Found{{p.id, p.pid, std::move(p.name), std::move(p.owner)}, found->start};
}

void MachineService::run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mutex_);
    woken_.notify_all();
  });
  state_.started = options_.continued ? options_.continued->started : ClockPoint::now();
  state_.ticks = options_.continued ? options_.continued->ticks : 0;
  cpu_at_begin_ = options_.continued ? options_.continued->cpu_at_begin : own_cpu_time();
  {
    const std::lock_guard lock(known_);
    const auto now = ClockPoint::now();
    state_.snapshot = live_.snapshot(now, now.host);
    restore();
    analysis::follow_day(state_.day, now.real, accounts_.domains());
  }
  if (options_.sink != nullptr) sampling_.batch.run = options_.run;
  sampling_.start([this] {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
    woken_.notify_all();
  });
  while (!stop.stop_requested()) {
    const HostTime begin = HostClock::now();
    bool is_requested = false;
    bool has_ended = false;  // what is requested
    {
      const std::lock_guard lock(mutex_);
      is_requested = is_tick_wanted();
      has_ended = is_requested && last_tick_ >= wanted_tick_;
    }
    if (has_ended) {
      keep();
    } else {
      tick(stop);
    }
    // One who asks once a tick would else find one that is a little too young to be followed by
    // another, and a little older each time.
    const Duration pause = time_to_next_tick();
    wait_for_tick(begin + (is_requested ? pause * 5 / 4 : pause), stop);
  }
  if (options_.has_last_tick && state_.ticks > 0) {
    tick({});
    if (kept_tick_ < last_tick_) keep();
  }
  sampling_.stop(options_.patience);
  share_.reset();
  (void)sampling_.finish();
}

Continued MachineService::hand_over() const {
  return {std::make_shared<const nlohmann::json>(service_state(state_, accounts_, boot_)),
          state_.ticks, state_.started, cpu_at_begin_};
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

void MachineService::request_tick(HostTime t) {
  const std::lock_guard lock(mutex_);
  wanted_tick_ = std::max(wanted_tick_, t);
  woken_.notify_all();
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
    if (has_new_jobs()) return;
    HostTime next = std::min(t, serve_programs());
    if (job_folder_.has_folder()) next = std::min(next, looked_for_jobs_ + kJobPeriod);
    {
      std::unique_lock lock(mutex_);
      woken_.wait_until(lock, steady(next), [&] {
        return stop.stop_requested() || has_ended_window_ || is_asked_ || has_news_ ||
               is_tick_wanted();
      });
      is_asked_ = false;
      const bool has_news = std::exchange(has_news_, false);
      if (is_tick_wanted()) return;
      if (has_news && !has_ended_window_) {
        lock.unlock();
        // A process is identified while it lives.
        if (sampling_.has_new_process()) sampling_.collect();
        continue;
      }
      if (!std::exchange(has_ended_window_, false)) continue;
    }
    settle_windows(stop);
  }
}

void MachineService::settle_windows(const std::stop_token& stop) {
  for (const HostTime t : windows_->take_marks()) live_.ledger().mark(t);
  const auto wanted = windows_->wanted();
  if (!wanted) return;
  wait_for_sensors(*wanted, stop);
  if (!stop.stop_requested()) windows_->settle(*wanted, live_.ledger());
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

void MachineService::wait_for_lists(HostTime t, const std::stop_token& stop) {
  const HostTime deadline = t + kListPatience;
  while (!uses_.has_looked(t) && !stop.stop_requested() && HostClock::now() < deadline) {
    wait_until(HostClock::now() + kPoll, stop);
    sampling_.collect();
  }
}

void MachineService::tick(const std::stop_token& stop) {
  Division division = divide();
  const HostTime at = HostClock::now();
  // Who is on a board by then: it may have begun after the last list.
  sampling_.list_soon();
  settle_windows(stop);
  wait_for_sensors(at, stop);
  wait_for_lists(at, stop);
  if (stop.stop_requested()) return;
  read_folders();
  {
    const std::lock_guard lock(known_);
    if (last_tick_ == HostTime{}) jobs_ = next_jobs_;
    map_jobs(division);
    state_.names = names_;
    find_uses(at, division);
    accounts_.begin_tick(at, division.workers);
    for (std::size_t d = 0; d < edges_.size(); ++d) charge(d, at, division);
    accounts_.end_tick();
    describe(at);
    mark_counters(at);
    jobs_ = next_jobs_;
  }
  watch_boards();
  {
    const std::lock_guard lock(mutex_);
    last_tick_ = at;
  }
  live_.ledger().tidy(at);
  windows_->tidy(at);
  live_.ledger().forget_before(std::min(at - kRemembered, windows_->oldest().value_or(at)));
  uses_.forget_before(at - kRemembered);
  sampling_.watch_clock();
  sampling_.flush();
  if (options_.on_tick) options_.on_tick(state_, accounts_);
  for (const auto& event : std::exchange(events_, {})) {
    if (options_.on_event) options_.on_event(event);
  }
  if (options_.readers) {
    if (const auto readers = options_.readers(at)) state_.readers = readers;
  }
  if (keeps(at)) keep();
}

// Not under a lock: requests are answered also while a file system hangs.
void MachineService::read_jobs() {
  if (!job_folder_.has_folder()) return;
  looked_for_jobs_ = HostClock::now();
  auto found = job_folder_.now(kFolderPatience);
  if (!found) sampling_.warn("the jobs of GPUs are unknown: " + found.error().message);
  next_jobs_ = found ? std::move(*found) : spans::JobMapping();
  if (const auto& file = next_jobs_.malformed(); !file.empty()) {
    sampling_.warn(
        fmt::format("{}: a line is no job id, which is one word of at most 128 "
                    "characters: it gives the GPU to no job",
                    (options_.job_mapping / file).string()));
  }
}

// The tick that follows is charged to the jobs before.
bool MachineService::has_new_jobs() {
  if (!job_folder_.has_folder() || HostClock::now() < looked_for_jobs_ + kJobPeriod) return false;
  read_jobs();
  return jobs_.all() != next_jobs_.all();
}

void MachineService::read_folders() {
  read_jobs();
  if (!kube_folder_.has_folder()) return;
  auto found = kube_folder_.now(kFolderPatience);
  if (found) {
    names_ = std::move(*found);
    return;
  }
  sampling_.warn("the names of pods are unknown: " + found.error().message);
  // Those that were known stay true: they belong to a UID.
  if (found.error().code != Errc::kTimeout) names_ = {};
}

void MachineService::restore() {
  const RealTime now = ClockPoint::now().real;
  Result<void> restored;
  if (options_.continued) {
    restored = restore_service_state(*options_.continued->counters, "the state before", boot_, now,
                                     state_, accounts_);
  } else if (!options_.state.empty()) {
    const auto saved = StateFile::read(options_.state);
    if (!saved) {
      restored = forward_error(saved);
    } else if (!saved->is_null()) {
      restored =
          restore_service_state(*saved, options_.state.string(), boot_, now, state_, accounts_);
    }
  }
  if (restored) return;
  std::string text = restored.error().message + "; the counters begin at zero";
  if (!options_.continued) {
    // The first save would replace it.
    auto kept = options_.state;
    kept += fmt::format(".unread-{}", now.time_since_epoch() / 1s);
    std::error_code error;
    std::filesystem::rename(options_.state, kept, error);
    text += error ? fmt::format(". It cannot be renamed ({}) and is overwritten", error.message())
                  : fmt::format(". It is kept as {}: rename it back for the version that wrote it",
                                kept.string());
  }
  sampling_.warn(std::move(text));
}

// For the service that continues this one.
void MachineService::mark_counters(HostTime at) {
  for (std::size_t d = 0; d < edges_.size(); ++d) {
    auto& state = state_.domains[d];
    // Without a report of this tick the mark stays where its energy was last counted.
    if (state.before) state.counter = state.before;
    if (edges_[d].at == at) mark_counter(d, at);
  }
}

void MachineService::mark_counter(std::size_t domain, HostTime t) {
  const auto total = live_.ledger().counter_at(domain, t);
  if (!total || *total < Energy{}) return;
  state_.domains[domain].counter =
      analysis::CounterMark{*total, analysis::wall_time(ClockPoint::now(), t)};
}

// The first time that its sensors have reported, or do so again. True: the energy since the last
// mark is counted.
bool MachineService::count_by_counter(std::size_t domain, HostTime at, const char* when) {
  auto& state = state_.domains[domain];
  if (!state.counted) return false;
  const auto before = std::exchange(state.before, std::nullopt);
  const auto total = live_.ledger().counter_at(domain, at);
  const auto& snapshot = state_.snapshot.domains[domain];
  const Duration gap =
      before ? analysis::wall_time(ClockPoint::now(), at) - before->at : Duration{};
  const Power most = analysis::kGainOfLimit *
                     Power::watts(snapshot.gauge(model::gauge::kPowerLimit).value_or(kMostWatts));
  Energy used = before && total ? *total - before->total : -Energy::microjoules(1);
  const auto wrap = live_.ledger().counter_wrap(domain);
  if (used < Energy{} && before && total && wrap) used += *wrap;
  // Less than before, or more than the device can draw: the counter began anew in between.
  const bool is_known = before && gap > Duration{} && gap < kLongestGap && used >= Energy{} &&
                        used <= most * gap && (!wrap || most * gap < *wrap);
  if (!is_known) {
    ++state.gaps;
    return false;
  }
  accounts_.add_unattributed(domain, used);
  state.between_services += used;
  events_.push_back(
      fmt::format("{} {} used {:.1f} J in the {:.1f} s {}, by its own counter: unattributed",
                  model::to_string(snapshot.domain.kind), snapshot.domain.device, used.joules(),
                  seconds(gap), when));
  return true;
}

void MachineService::note_failures(const std::vector<model::ReadFailure>& failures) {
  for (const auto& failure : failures) {
    const auto& sensors = sampling_.sensors();
    const auto sensor = std::ranges::find(sensors, failure.sensor, &model::Sensor::id);
    if (sensor == sensors.end()) continue;
    const auto& domains = sampling_.domains();
    for (std::size_t d = 0; d < domains.size(); ++d) {
      if (domains[d].id == sensor->domain) watched_[d].failure = failure.error.message;
    }
  }
}

void MachineService::watch_boards() {
  const auto say = [this](std::size_t d, std::string_view what) {
    const auto& domain = sampling_.domains()[d];
    events_.push_back(fmt::format("{} {} {}{}{}", model::to_string(domain.kind), domain.device,
                                  domain.uuid, domain.uuid.empty() ? "" : " ", what));
  };
  for (std::size_t d = 0; d < watched_.size(); ++d) {
    auto& watched = watched_[d];
    auto& state = state_.domains[d];
    if (!state.counted || sampling_.domains()[d].parent) continue;
    if (state.reported) {
      if (watched.silent_ticks >= kSilentTicks) say(d, "reports again");
      watched = {};
    } else if (++watched.silent_ticks >= kSilentTicks) {
      state.reason =
          fmt::format("does not report any more ({})",
                      watched.failure.empty() ? "its sensors are silent" : watched.failure);
      if (watched.silent_ticks == kSilentTicks) say(d, state.reason + "; its energy stands still");
    }
  }
}

bool MachineService::keeps(HostTime tick) {
  if (!file_ || !options_.keeps_all || options_.keeps_all()) return true;
  const std::lock_guard lock(mutex_);
  const bool is_wanted = is_tick_wanted() && tick >= wanted_tick_;
  return is_wanted || kept_tick_ == HostTime{} || tick - kept_tick_ >= kLongestUnkept;
}

// Before the tick is shown: a counter that was read never falls, even if the service is killed.
void MachineService::keep() {
  if (file_) {
    const auto saved = file_->save(service_state(state_, accounts_, boot_));
    if (!saved) sampling_.warn("the counters are not kept: " + saved.error().message);
  }
  {
    const std::lock_guard lock(mutex_);
    kept_tick_ = last_tick_;
  }
  if (options_.on_kept) options_.on_kept(state_, accounts_);
}

void MachineService::describe(HostTime at) {
  const ClockPoint now = ClockPoint::now();
  state_.snapshot = live_.snapshot(now, last_tick_ == HostTime{} ? at : last_tick_);
  // Of the energies, which may be known some seconds later: energy over the difference of two of
  // these times is a power.
  state_.snapshot.time = analysis::wall_time(now, at);
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

// --- Sharing its sensors with local programs ---

Result<void> MachineService::start_sharing() {
  if (!options_.share) return {};
  auto socket = HubSocket::create(options_.share->access);
  if (!socket) return forward_error(socket);
  HubOptions options;
  options.fastest = options.between_reads = options_.share->fastest;
  options.root = options_.share->root;
  auto started = HubServer::start(std::move(*socket), std::move(options), offered_,
                                  sampling_.sensors(), [this] {
                                    const std::lock_guard lock(mutex_);
                                    is_asked_ = true;
                                    woken_.notify_all();
                                  });
  if (!started) return forward_error(started);
  share_ = std::move(*started);
  return {};
}

// Returns when to call it next, unless a program asks before.
HostTime MachineService::serve_programs() {
  if (!share_) return HostTime::max();
  if (auto problem = share_->take_problem(); !problem.empty()) sampling_.warn(std::move(problem));
  if (const auto pace = share_->take_pace()) set_pace(*pace);
  const HostTime next = reads_.serve(*share_, sampling_);
  if (!share_->has_programs()) return next;
  const HostTime now = HostClock::now();
  if (now >= delivered_ + delivery_) {
    sampling_.collect();
    delivered_ = now;
  }
  return std::min(delivered_ + delivery_, next);
}

void MachineService::set_pace(const std::optional<HubServer::Pace>& pace) {
  const Duration own = std::min(options_.tick, process_period());
  if (!pace) {
    sampling_.set_pace(options_.demand, own);
    return;
  }
  delivery_ = pace->delivery;
  const bool has_period = pace->process_period > Duration{};
  sampling_.set_pace(meters::joined_demand(options_.demand, pace->demand),
                     has_period ? std::min(own, pace->process_period) : own);
}

}  // namespace jouleprof::session
