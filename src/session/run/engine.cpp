#include "session/run/engine.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace jouleprof::session {
namespace {

constexpr Duration kLate = std::chrono::seconds{2};
constexpr Duration kAnswering = std::chrono::milliseconds{10};  // between looks for new readings

Duration of(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
}

rusage own_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

Duration cpu_time(const rusage& usage) { return of(usage.ru_utime) + of(usage.ru_stime); }

template <typename T>
void copy_append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Engine::Engine(const SessionOptions& options, SignalStream& signals, Sampler sampler,
               std::vector<model::Domain> domains, Sink* sink)
    : processes(options.root, options.process_period),
      options_(options),
      signals_(signals),
      sampler_(std::move(sampler)),
      domains_(std::move(domains)),
      live_(sampler_.sensors()),
      recorder_(sink) {
  on_signal = [this](const Signal& signal) {
    switch (signal.number) {
      case SIGINT:
      case SIGQUIT:
      case SIGTERM:
      case SIGHUP:
        interrupted_by = signal.number;
        break;
      case SIGTSTP:
        signals_.stop_self();
        break;
      default:
        break;
    }
  };
}

void Engine::start() {
  begin_ = HostClock::now();
  cpu_at_begin_ = cpu_time(own_usage());
  last_tick_ = next_tick_ = begin_;
  next_tick_ += options_.tick_period;
  batch_.domains = domains_;
  batch_.sensors = sampler_.sensors();
  post_run();
  watch_clock();
  flush();
  sampler_.on_buffer([this] { signals_.wake(); });
  sampler_.start();
}

void Engine::begin_phase(Phase phase) {
  phase_ = phase;
  phase_begin_ = HostClock::now();
}

void Engine::serve(HostTime until, const std::function<bool()>& ended, int fd) {
  const std::stop_callback wake(options_.stop, [this] { signals_.wake(); });
  for (;;) {
    while (const auto signal = signals_.next()) on_signal(*signal);
    if ((ended && ended()) || (!child && interrupted())) return;
    serve_windows();
    HostTime now = HostClock::now();
    // Whatever is due soon is done now: waking up is what costs most.
    const HostTime soon = now + options_.commit_period / 10;
    if (soon >= processes.next() || soon >= next_collect_ || now >= buffer_due()) {
      if (soon >= processes.next()) look_at_processes();
      collect();
      watch_clock();
      flush();
      next_collect_ = now + options_.commit_period;
    }
    if (options_.on_status && soon >= next_status_) tell_status(now);
    if (options_.on_tick && now >= next_tick_) tick(now);
    if (options_.ticks && ticks_ >= *options_.ticks) return;
    if (now >= until) return;

    HostTime next = std::min({until, processes.next(), next_collect_, buffer_due()});
    if (options_.on_status) next = std::min(next, next_status_);
    if (options_.on_tick) next = std::min(next, next_tick_);
    if (windows != nullptr && windows->is_waiting()) next = std::min(next, now + kAnswering);
    if (next <= HostClock::now()) continue;
    signals_.wait(next, fd);
    now = HostClock::now();
    if (now - next > kLate) {
      warn(
          fmt::format("the tool was stopped, or could not run, for {:.1f} s", seconds(now - next)));
    }
  }
}

// What a driver keeps for us is old when it comes, and goes into the file at once: of a tool that
// is killed, no more is lost than what the driver still had. Ten times in a period at most.
HostTime Engine::buffer_due() const {
  return sampler_.has_buffer() ? next_collect_ - options_.commit_period * 9 / 10 : HostTime::max();
}

void Engine::warn(std::string text) {
  if (!reported_.insert(text).second) return;
  warnings_.push_back({HostClock::now(), std::move(text)});
  batch_.warnings.push_back(warnings_.back());
}

void Engine::look_at_processes(bool all) {
  Batch found;
  collect();  // what drivers told of processes so far is matched with this look
  processes.look(HostClock::now(), found, all);
  if (auto warning = processes.add_gpu_uses(uses_, found)) warn(*warning);
  uses_.clear();
  if (options_.on_tick) {
    copy_append(found.process_readings.processes, tick_process_readings_.processes);
    copy_append(found.process_readings.gpu_processes, tick_process_readings_.gpu_processes);
    copy_append(found.process_readings.machine, tick_process_readings_.machine);
  }
  batch_.append(std::move(found));
  processes.reap(child);
}

void Engine::collect() {
  Sampled sampled;
  sampler_.take(sampled);
  take_in(std::move(sampled));
}

void Engine::take_in(Sampled&& sampled) {
  live_.add(sampled.readings);
  copy_append(sampled.gpu_processes, uses_);
  for (auto& warning : sampled.warnings) warn(std::move(warning.text));
  if (windows != nullptr) windows->append(sampled.readings);
  Batch got;
  got.readings = std::move(sampled.readings);
  if (options_.on_tick) {
    copy_append(got.readings.counters, tick_readings_.counters);
    copy_append(got.readings.powers, tick_readings_.powers);
    copy_append(got.readings.gauges, tick_readings_.gauges);
    copy_append(got.readings.failures, tick_readings_.failures);
  }
  batch_.append(std::move(got));
}

void Engine::serve_windows() {
  if (windows == nullptr) return;
  if (windows->take_read_wish()) sampler_.read_soon();
  if (windows->is_waiting()) collect();
}

void Engine::watch_clock() {
  auto seen = clock_.look(ClockPoint::now());
  copy_append(seen.points, batch_.clock_points);
  if (seen.warning) warn(std::move(*seen.warning));
}

void Engine::tell_status(HostTime now) {
  Status status;
  status.phase = phase_;
  status.elapsed = now - phase_begin_;
  for (const auto& domain : domains_) {
    status.powers.push_back({&domain, live_.of(domain.id, now)});
  }
  options_.on_status(status);
  next_status_ = now + options_.status_period;
}

void Engine::tick(HostTime now) {
  collect();
  options_.on_tick(
      {last_tick_, now, domains_, sampler_.sensors(), tick_readings_, tick_process_readings_});
  tick_readings_.clear();
  tick_process_readings_.clear();
  ++ticks_;
  last_tick_ = now;
  while (next_tick_ <= now) next_tick_ += options_.tick_period;
}

void Engine::take_traces() {
  // What cannot be recorded stays where it is.
  if (traces == nullptr || recorder_.error()) return;
  // Killed between the two, what was not committed yet is still in the spool.
  if (batch_.traces.empty() && recorder_.caught_up()) traces->remove_taken();
  std::vector<std::string> warnings;
  traces->take(batch_.traces, warnings);
  for (auto& text : warnings) warn(std::move(text));
}

void Engine::end_traces() {
  if (traces == nullptr || recorder_.error()) return;
  std::vector<std::string> warnings;
  traces->take_rest(batch_.traces, warnings, options_.patience);
  for (auto& text : warnings) warn(std::move(text));
}

void Engine::post_run() { batch_.run = run; }

void Engine::flush() {
  if (windows != nullptr) {
    Batch got;
    std::vector<std::string> warnings;
    windows->take(got.windows, warnings);
    batch_.append(std::move(got));
    for (auto& text : warnings) warn(std::move(text));
  }
  take_traces();
  if (auto error = recorder_.error()) {
    warn(fmt::format("the recording ends early: {}", error->message));
  }
  recorder_.post(std::exchange(batch_, Batch{}));
}

SessionResult Engine::finish() {
  Sampled sampled;
  sampler_.stop(options_.patience, sampled);
  take_in(std::move(sampled));
  if (windows != nullptr) windows->stop();
  look_at_processes(true);
  end_traces();
  batch_.clock_points.push_back(ClockPoint::now());

  const rusage usage = own_usage();
  SessionResult result;
  result.overhead = {cpu_time(usage) - cpu_at_begin_, HostClock::now() - begin_,
                     static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  batch_.overhead = result.overhead;
  post_run();
  flush();
  const auto finished = recorder_.finish();
  if (!finished) {
    result.sink_error = finished.error();
    warn(fmt::format("the recording ends early: {}", finished.error().message));
  }
  if (traces != nullptr) {
    const auto kept = traces->close(finished.has_value());
    if (kept && result.sink_error) result.sink_error->message += "; " + *kept;
  }
  result.run = run;
  result.run.complete = finished.has_value();
  result.interrupted_by = interrupted_by;
  result.warnings = warnings_;
  return result;
}

}  // namespace jouleprof::session
