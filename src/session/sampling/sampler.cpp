#include "session/sampling/sampler.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/process/threads.h"
#include "spans/procs/procfs.h"

namespace jouleprof::session {
namespace {

model::DomainId shifted(model::DomainId id, std::uint32_t by) {
  return model::DomainId{static_cast<std::uint32_t>(id) + by};
}

constexpr Duration kHangs = std::chrono::seconds{10};
constexpr Duration kShortestSleep = std::chrono::milliseconds{1};
// What is due this soon is read now: waking up costs more than most reads. Less than what a probe
// takes for a last read (see CounterProbe).
constexpr Duration kSoon = std::chrono::microseconds{900};
constexpr Duration kLongestSleep = std::chrono::hours{1};
constexpr Duration kRarestLook = std::chrono::seconds{5};  // at processes
constexpr int kSmoothed = 8;  // such looks, of whose cost there is a mean

constexpr HostTime kNever = HostTime::max();

bool is_wanted(const meters::Probe& probe, const IdMap& ids) {
  return probe.sensors.empty() ||
         std::ranges::any_of(probe.sensors, [&ids](model::SensorId sensor) {
           const auto own = static_cast<std::size_t>(sensor);
           return own < ids.sensors.size() && ids.sensors[own];
         });
}

}  // namespace

std::vector<model::Domain> joined_domains(
    const std::vector<std::unique_ptr<meters::Meter>>& meters) {
  std::vector<model::Domain> all;
  for (const auto& meter : meters) {
    const auto first = static_cast<std::uint32_t>(all.size());
    for (model::Domain domain : meter->domains()) {
      domain.id = shifted(domain.id, first);
      if (domain.parent) domain.parent = shifted(*domain.parent, first);
      all.push_back(std::move(domain));
    }
  }
  return all;
}

Sampler::Sampler(std::vector<std::unique_ptr<meters::Meter>> meters, Duration process_period,
                 const std::function<bool(const model::Domain&)>& keep) {
  const auto joined = joined_domains(meters);
  std::unordered_map<model::DomainId, bool> kept;
  for (const auto& domain : joined) kept[domain.id] = !keep || keep(domain);
  std::uint32_t first_domain = 0;
  std::uint32_t first_sensor = 0;
  for (model::Domain domain : joined) {
    if (!kept[domain.id]) continue;
    if (domain.parent && !kept[*domain.parent]) domain.parent.reset();
    domains_.push_back(std::move(domain));
  }
  for (auto& meter : meters) {
    IdMap ids;
    ids.domains.resize(meter->domains().size());
    ids.sensors.resize(meter->sensors().size());
    for (std::uint32_t i = 0; i < ids.domains.size(); ++i) {
      const model::DomainId id{first_domain + i};
      if (kept[id]) ids.domains[i] = id;
    }
    for (model::Sensor sensor : meter->sensors()) {
      const auto own = static_cast<std::uint32_t>(sensor.id);
      sensor.id = model::SensorId{first_sensor + own};
      sensor.domain = shifted(sensor.domain, first_domain);
      if (!kept[sensor.domain] || own >= ids.sensors.size()) continue;
      ids.sensors[own] = sensor.id;
      sensors_.push_back(std::move(sensor));
    }
    first_domain += static_cast<std::uint32_t>(ids.domains.size());
    first_sensor += static_cast<std::uint32_t>(ids.sensors.size());
    lanes_.push_back(std::make_unique<Lane>(std::move(meter), std::move(ids), process_period));
  }
}

void Sampler::on_news(const std::function<void()>& reported) {
  for (auto& lane : lanes_) lane->on_news(reported);
}

bool Sampler::has_buffer() const {
  return std::ranges::any_of(lanes_, [](const auto& l) { return l->has_buffer(); });
}

bool Sampler::has_new_process() const {
  return std::ranges::any_of(lanes_, [](const auto& l) { return l->has_new_process(); });
}

void Sampler::start() {
  for (auto& lane : lanes_) lane->start();
}

std::vector<std::uint64_t> Sampler::read_soon() {
  std::vector<std::uint64_t> numbers;
  for (auto& lane : lanes_) numbers.push_back(lane->ask_to_read());
  return numbers;
}

bool Sampler::has_read(const std::vector<std::uint64_t>& numbers) const {
  for (std::size_t i = 0; i < lanes_.size() && i < numbers.size(); ++i) {
    if (!lanes_[i]->has_read(numbers[i])) return false;
  }
  return true;
}

void Sampler::list_soon() {
  for (auto& lane : lanes_) lane->ask_to_list();
}

void Sampler::set_pace(const meters::Demand& demand, Duration process_period) {
  for (auto& lane : lanes_) lane->set_pace(demand, process_period);
}

void Sampler::take(Sampled& out) {
  for (auto& lane : lanes_) lane->take(out);
}

void Sampler::stop(Duration patience, Sampled& out, bool last_reads) {
  for (auto& lane : lanes_) lane->ask_to_stop(last_reads);
  const HostTime deadline = HostClock::now() + patience;
  for (auto& lane : lanes_) lane->finish(deadline, out);
  lanes_.clear();
}

struct Lane::State {
  std::unique_ptr<meters::Meter> meter;  // used by the lane's thread only, once it runs
  std::string name;
  IdMap ids;
  std::vector<std::size_t> wanted;  // the probes to read

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  Duration process_period{};
  bool stop = false;
  bool last_reads = true;
  bool read_now = false;
  bool list_now = false;
  std::uint64_t asked = 0;  // reads of every probe, and how many of them have ended
  std::uint64_t ended = 0;
  std::optional<meters::Demand> demand;  // to be set
  bool done = false;
  Sampled out;
  std::string call;  // the call that the thread is in; empty when in none
  HostTime call_began{};
  bool hang_reported = false;
  bool buffer_emptied = false;
  bool process_began = false;
  std::function<void()> on_news;
  std::vector<pid_t> listed;  // on the devices, by the last read; of the lane's thread
  spans::ProcFs procs;        // likewise

  void enter(std::string what) {
    const std::lock_guard lock(mutex);
    call = std::move(what);
    call_began = HostClock::now();
  }

  std::string hanging(HostTime now) const {
    return fmt::format("{}: '{}' has not answered for {:.1f} s", name, call,
                       seconds(now - call_began));
  }

  void take_notices() {
    for (auto& text : meter->take_notices()) out.warnings.push_back({HostClock::now(), text});
  }

  // An end of memory here must not be one of the measured command.
  void give_up(const char* why) noexcept {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
    try {
      out.warnings.push_back(
          {HostClock::now(), fmt::format("{} is not read any more: {}", name, why)});
    } catch (...) {  // no memory for a warning
    }
  }

  HostTime read(std::size_t probe, model::Readings& scratch) {
    enter(meter->probes()[probe].name);
    scratch.clear();
    const HostTime next = meter->read(probe, scratch);
    const std::lock_guard lock(mutex);
    call.clear();
    take_notices();
    // Two of one sensor at once: it keeps them until they are asked for.
    if (scratch.powers.size() > 1 && scratch.powers[0].sensor == scratch.powers[1].sensor) {
      buffer_emptied = true;
      if (on_news) on_news();
    }
    model::move_renumbered(scratch, out.readings, ids.sensors);
    return next;
  }

  // Whether it is worth asking again.
  bool read_processes(model::Readings& scratch) {
    enter("processes on the devices");
    scratch.clear();
    auto uses = meter->read_processes(scratch);
    // The parents of new ones at once: they may end before the owner looks.
    std::map<pid_t, pid_t> parents;
    if (uses && *uses) {
      for (const auto& use : **uses) {
        if (std::ranges::find(listed, use.pid) != listed.end()) continue;
        const auto stat = procs.stat(use.pid);
        parents[use.pid] = stat ? stat->parent : 0;
      }
    }
    const std::lock_guard lock(mutex);
    call.clear();
    model::move_renumbered(scratch, out.readings, ids.sensors);
    if (!uses) return false;
    if (!*uses) {
      out.warnings.push_back(
          {HostClock::now(), fmt::format("{} cannot list the processes that use its devices: {}",
                                         name, uses->error().message)});
      return uses->error().code == Errc::kUnavailable;
    }
    // A process may end before it is identified: the owner does so at once.
    const bool has_news = !parents.empty();
    out.parents.merge(parents);
    listed.clear();
    for (const auto& use : uses->value()) listed.push_back(use.pid);
    model::move_renumbered(**uses, out.gpu_processes, &model::GpuProcessUse::domain, ids.domains);
    if (has_news) {
      process_began = true;
      if (on_news) on_news();
    }
    return true;
  }
};

Lane::Lane(std::unique_ptr<meters::Meter> meter, IdMap ids, Duration process_period)
    : state_(std::make_shared<State>()) {
  state_->name = meter->name();
  state_->meter = std::move(meter);
  state_->ids = std::move(ids);
  state_->process_period = process_period;
  const auto& probes = state_->meter->probes();
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (is_wanted(probes[i], state_->ids)) state_->wanted.push_back(i);
  }
  state_->take_notices();
}

Lane::~Lane() {
  if (!thread_.joinable()) return;
  ask_to_stop(false);
  try {
    Sampled ignored;
    finish(HostClock::now() + std::chrono::seconds{2}, ignored);
  } catch (const std::exception&) {  // no memory for what it has read
    if (thread_.joinable()) thread_.detach();
  }
}

void Lane::on_news(std::function<void()> reported) {
  const std::lock_guard lock(state_->mutex);
  state_->on_news = std::move(reported);
}

bool Lane::has_new_process() const {
  const std::lock_guard lock(state_->mutex);
  return state_->process_began;
}

bool Lane::has_buffer() const {
  const std::lock_guard lock(state_->mutex);
  return state_->buffer_emptied;
}

void Lane::start() {
  if (state_->wanted.empty()) return;
  auto thread = start_thread([state = state_] { run(state); },
                             [state = state_](const char* why) { state->give_up(why); });
  if (thread) {
    thread_ = std::move(*thread);
    return;
  }
  const std::lock_guard lock(state_->mutex);
  state_->out.warnings.push_back(
      {HostClock::now(), fmt::format("{} is not read: {}; raise the limit (ulimit -u, -v) to "
                                     "measure it",
                                     state_->name, thread.error().message)});
}

void Lane::run(const std::shared_ptr<State>& state) {
  // Lets the kernel join our wake-ups with others.
  prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(kShortestSleep.count()));
  State& s = *state;
  const HostTime begin = HostClock::now();
  std::vector<HostTime> due(s.wanted.size(), begin);
  HostTime processes_due = kNever;
  {
    const std::lock_guard lock(s.mutex);
    if (s.process_period > Duration{}) processes_due = begin;
  }
  Duration process_cost{};
  model::Readings scratch;

  bool last = false;
  while (!last) {
    bool all = false;
    std::uint64_t asked = 0;
    std::optional<meters::Demand> demand;
    Duration process_period{};
    {
      std::unique_lock lock(s.mutex);
      HostTime next = begin + (HostClock::now() - begin) + kLongestSleep;
      for (const HostTime t : due) next = std::min(next, t);
      next = std::min(next, processes_due);
      s.changed.wait_until(lock, steady(next), [&s] { return s.stop || s.read_now || s.list_now; });
      last = s.stop;
      all = last ? s.last_reads : std::exchange(s.read_now, false);
      if (last && !all) break;
      const bool is_listed = std::exchange(s.list_now, false) && processes_due != kNever;
      if (is_listed) processes_due = HostClock::now();
      asked = s.asked;
      demand = std::exchange(s.demand, std::nullopt);
      process_period = s.process_period;
    }
    if (demand) s.meter->set_demand(*demand);
    const HostTime woke = HostClock::now();
    for (std::size_t i = 0; i < s.wanted.size(); ++i) {
      const HostTime now = HostClock::now();
      if (!all && due[i] > now + kSoon) continue;
      due[i] = std::max(s.read(s.wanted[i], scratch), now + kShortestSleep);
    }
    meters::end_waits(*s.meter, s.wanted, due, [&](std::size_t probe) {
      const HostTime now = HostClock::now();
      return std::max(s.read(probe, scratch), now + kShortestSleep);
    });
    const HostTime now = HostClock::now();
    if (processes_due != kNever && (all || processes_due <= now + kSoon)) {
      const Duration before = thread_cpu_time();
      const bool again = s.read_processes(scratch);
      // From the wake-up on, so that it falls together with probes of the same period.
      // A mean: only some of these reads ask for utilisation, which is what costs most.
      const Duration cost = thread_cpu_time() - before;
      // A call that meets another program's start or end can take a hundred times as long.
      if (process_cost == Duration{}) process_cost = cost;
      process_cost += (std::min(cost, 3 * process_cost) - process_cost) / kSmoothed;
      const Duration pause = pause_after(process_cost, process_period, kRarestLook);
      processes_due = again ? woke + pause : kNever;
    }
    if (!all) continue;
    const std::lock_guard lock(s.mutex);
    s.ended = asked;
  }
  const std::lock_guard lock(s.mutex);
  s.done = true;
  s.changed.notify_all();
}

void Lane::take(Sampled& out) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto append = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(s.out.readings.counters, out.readings.counters);
  append(s.out.readings.powers, out.readings.powers);
  append(s.out.readings.gauges, out.readings.gauges);
  append(s.out.readings.failures, out.readings.failures);
  append(s.out.gpu_processes, out.gpu_processes);
  out.parents.merge(s.out.parents);
  append(s.out.warnings, out.warnings);
  s.out.clear();
  s.buffer_emptied = false;
  s.process_began = false;
  const HostTime now = HostClock::now();
  if (!s.call.empty() && !s.hang_reported && now - s.call_began > kHangs) {
    s.hang_reported = true;
    out.warnings.push_back({now, s.hanging(now)});
  }
}

std::uint64_t Lane::ask_to_read() {
  const std::lock_guard lock(state_->mutex);
  state_->read_now = true;
  state_->changed.notify_all();
  return ++state_->asked;
}

void Lane::ask_to_list() {
  const std::lock_guard lock(state_->mutex);
  state_->list_now = true;
  state_->changed.notify_all();
}

bool Lane::has_read(std::uint64_t number) const {
  if (!thread_.joinable()) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->ended >= number;
}

void Lane::set_pace(const meters::Demand& demand, Duration process_period) {
  const std::lock_guard lock(state_->mutex);
  state_->demand = demand;
  if (process_period > Duration{}) state_->process_period = process_period;
  state_->read_now = true;
  state_->changed.notify_all();
}

void Lane::ask_to_stop(bool last_reads) {
  const std::lock_guard lock(state_->mutex);
  state_->last_reads = last_reads;
  state_->stop = true;
  state_->changed.notify_all();
}

void Lane::finish(HostTime deadline, Sampled& out) {
  if (!thread_.joinable()) {
    if (state_) take(out);
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->on_news = nullptr;
  const bool done =
      state_->changed.wait_until(lock, steady(deadline), [this] { return state_->done; });
  if (!done) {
    const HostTime now = HostClock::now();
    out.warnings.push_back({now, state_->hanging(now) + "; what it would have read is missing"});
    state_->hang_reported = true;
  }
  lock.unlock();
  take(out);
  if (done) {
    thread_.join();
  } else {
    thread_.detach();
    state_ = nullptr;
  }
}

}  // namespace jouleprof::session
