#include "session/run/engine.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace jouleprof::session {
namespace {

constexpr Duration kLate = std::chrono::seconds{2};
constexpr Duration kHistory = std::chrono::seconds{30};  // snapshots ask for the latest only

}  // namespace

Engine::Engine(const SessionOptions& options, SignalStream& signals, Sampler sampler,
               std::vector<model::Domain> domains, Sink* sink)
    : processes(options.root, options.process_period),
      options_(options),
      signals_(signals),
      sampling_(std::move(sampler), std::move(domains), sink,
                [this](const Sampled& sampled) { take_in(sampled); }) {
  if (options.on_snapshot) live_.emplace(sampling_.domains(), sampling_.sensors(), kHistory);
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
  cpu_at_begin_ = own_cpu_time();
  snapshots_since_ = begin_;
  next_snapshot_ = begin_ + options_.snapshot_period;
  post_run();
  sampling_.start([this] { signals_.wake(); });
}

void Engine::serve(HostTime until, const std::function<bool()>& ended, int fd) {
  const std::stop_callback wake(options_.stop, [this] { signals_.wake(); });
  for (;;) {
    while (const auto signal = signals_.next()) on_signal(*signal);
    if ((ended && ended()) || (!child && interrupted())) return;
    const HostTime next_for_programs = serve_programs();
    HostTime now = HostClock::now();
    // Whatever is due soon is done now: waking up is what costs most.
    const HostTime soon = now + options_.commit_period / 10;
    const bool has_new = sampling_.has_new_process();
    if (has_new || soon >= processes.next() || soon >= next_collect_ || now >= buffer_due()) {
      if (has_new || soon >= processes.next()) look_at_processes();
      sampling_.collect();
      sampling_.watch_clock();
      flush();
      next_collect_ = now + options_.commit_period;
    }
    if (live_ && now >= next_snapshot_) show_snapshot(now);
    if (options_.snapshots && snapshots_ >= *options_.snapshots) return;
    if (now >= until) return;

    HostTime next =
        std::min({until, processes.next(), next_collect_, buffer_due(), next_for_programs});
    if (live_) next = std::min(next, next_snapshot_);
    if (next <= HostClock::now()) continue;
    signals_.wait(next, fd);
    now = HostClock::now();
    if (now - next > kLate) {
      warn(
          fmt::format("the tool was stopped, or could not run, for {:.1f} s", seconds(now - next)));
    }
  }
}

// Readings from a driver's buffer are old when they arrive, and are recorded at once: a tool that
// is killed then loses only what the driver still held. Ten times in a period at most.
HostTime Engine::buffer_due() const {
  return sampling_.has_buffer() ? next_collect_ - options_.commit_period * 9 / 10 : HostTime::max();
}

void Engine::warn_all(std::vector<std::string>&& texts) {
  for (auto& text : texts) warn(std::move(text));
}

void Engine::look_at_processes(bool all) {
  Batch found;
  sampling_.collect();  // what drivers have reported of processes is matched with this look
  if (auto warning = processes.look(HostClock::now(), found, all)) warn(*warning);
  if (auto warning = processes.add_gpu_uses(uses_, found, parents_)) warn(*warning);
  uses_.clear();
  parents_.clear();
  if (live_) live_->append(found.process_readings.machine);
  sampling_.batch.append(std::move(found));
  processes.reap(child);
}

void Engine::take_in(const Sampled& sampled) {
  if (live_) live_->append(sampled.readings);
  if (hub != nullptr) hub->append(sampled);
  uses_.insert(uses_.end(), sampled.gpu_processes.begin(), sampled.gpu_processes.end());
  parents_.insert(sampled.parents.begin(), sampled.parents.end());
}

HostTime Engine::serve_programs() {
  if (hub == nullptr) return HostTime::max();
  if (auto problem = hub->take_problem(); !problem.empty()) warn(std::move(problem));
  serve_members();
  // A program may end before the next look is due, and has windows: its process is listed too.
  const auto newcomers = hub->take_newcomers();
  const auto is_new = [this](pid_t pid) { return !processes.knows(pid); };
  if (std::ranges::any_of(newcomers, is_new)) look_at_processes();
  return reads_.serve(*hub, sampling_);
}

void Engine::serve_members() {
  for (const auto& member : hub->members().take()) {
    processes.add_root(member.pid);
    // What one of the job's commands can see is visible.
    for (model::Domain domain : sampling_.domains()) {
      const auto& seen = member.visible;
      if (domain.visible || std::ranges::find(seen, domain.id) == seen.end()) continue;
      domain.visible = true;
      sampling_.batch.domains.push_back(std::move(domain));
    }
  }
  if (!hub->members().see_leaving()) return;
  look_at_processes(true);
  hub->release_leaving();
}

void Engine::show_snapshot(HostTime now) {
  sampling_.collect();
  const ClockPoint clock = ClockPoint::now();
  options_.on_snapshot(live_->snapshot(clock, snapshots_since_));
  live_->ledger().tidy(clock.host);
  ++snapshots_;
  while (next_snapshot_ <= now) next_snapshot_ += options_.snapshot_period;
}

void Engine::take_traces() {
  // What cannot be recorded stays in the spool.
  if (traces == nullptr || sampling_.sink_error() || sampling_.has_waiting_traces()) return;
  // Of a tool that is killed, what was not committed yet is then still in the spool.
  if (sampling_.batch.traces.empty() && sampling_.is_written()) traces->remove_taken();
  std::vector<std::string> warnings;
  traces->take(sampling_.batch.traces, warnings);
  warn_all(std::move(warnings));
}

void Engine::end_traces() {
  if (traces == nullptr || sampling_.sink_error()) return;
  std::vector<std::string> warnings;
  traces->take_rest(sampling_.batch.traces, warnings, options_.patience);
  warn_all(std::move(warnings));
}

void Engine::flush() {
  gather();
  sampling_.flush();
}

void Engine::gather() {
  if (hub != nullptr) {
    std::vector<std::string> warnings;
    hub->windows().take(sampling_.batch.windows, warnings);
    warn_all(std::move(warnings));
    if (auto open = hub->windows().open_windows(); open != run.open_windows) {
      run.open_windows = std::move(open);
      post_run();
    }
  }
  take_traces();
}

SessionResult Engine::finish() {
  sampling_.stop(options_.patience);
  if (hub != nullptr) hub->stop();
  look_at_processes(true);
  end_traces();

  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  SessionResult result;
  result.overhead = {own_cpu_time() - cpu_at_begin_, HostClock::now() - begin_,
                     static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  sampling_.batch.overhead = result.overhead;
  post_run();
  gather();
  const auto finished = sampling_.finish();
  if (!finished) result.sink_error = finished.error();
  if (traces != nullptr) {
    const auto kept = traces->close(finished.has_value());
    if (kept && result.sink_error) result.sink_error->message += "; " + *kept;
  }
  result.run = run;
  result.run.complete = finished.has_value();
  result.interrupted_by = interrupted_by;
  result.warnings = sampling_.warnings();
  return result;
}

}  // namespace jouleprof::session
