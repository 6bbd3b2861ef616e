#include "session/live_monitor.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "session/run_info.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 500ms;      // of looking after windows and readings
constexpr Duration kFirstReadings = 1s;  // what open() waits for them at most
constexpr Duration kAskAgain = 50ms;     // while an answer is awaited
constexpr Duration kPoll = 3ms;
// Windows recorded one by one; beyond it a recording would grow without bound.
constexpr std::uint64_t kMostRecorded = 5'000'000;

// libstdc++'s steady clock is CLOCK_MONOTONIC, as is ours.
std::chrono::steady_clock::time_point steady(HostTime t) {
  return std::chrono::steady_clock::time_point{t.time_since_epoch()};
}

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

std::vector<std::string> own_command() {
  std::vector<std::string> words;
  const auto text = read_file("/proc/self/cmdline");
  for (const auto word : split(text.value_or(""), '\0')) words.emplace_back(word);
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// Why nothing can be measured.
std::string reasons(const std::vector<model::Domain>& domains) {
  std::string text;
  for (const auto& domain : domains) {
    if (domain.unavailable_reason.empty()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", domain.device, domain.unavailable_reason);
  }
  return text.empty() ? "no sensor was found" : text;
}

}  // namespace

Result<std::unique_ptr<LiveMonitor>> LiveMonitor::open(
    LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  auto joined = joined_domains(meters);
  const auto selected = select_devices(joined, options.devices);
  if (!selected) return tl::unexpected(selected.error());
  const auto visibility = apply_visibility(joined, options.environment);
  std::vector<bool> keep(joined.size());
  for (std::size_t i = 0; i < joined.size(); ++i) {
    // Whoever names a device wants it, whether CUDA sees it or not.
    keep[i] = (*selected)[i] && (joined[i].visible || !options.devices.empty());
  }
  Sampler sampler(std::move(meters), Duration{}, [&](const model::Domain& domain) {
    return keep[static_cast<std::size_t>(domain.id)];
  });
  const bool any = std::any_of(sampler.sensors().begin(), sampler.sensors().end(),
                               [](auto& s) { return s.kind != model::SensorKind::kGauge; });
  if (!any) {
    return fail(Errc::kUnavailable,
                fmt::format("nothing can be measured here ({}); `jouleprof doctor` says what would "
                            "help",
                            reasons(sampler.domains())));
  }
  auto domains = sampler.domains();
  for (auto& domain : domains) domain.visible = joined[static_cast<std::size_t>(domain.id)].visible;
  std::unique_ptr<LiveMonitor> monitor(
      new LiveMonitor(std::move(options), std::move(sampler), std::move(domains)));
  std::unique_lock lock(monitor->mutex_);
  for (const auto& text : visibility.warnings) {
    monitor->batch_.warnings.push_back({HostClock::now(), text});
  }
  const HostTime now = HostClock::now();
  monitor->wait_for(now, now + kFirstReadings, lock);
  return monitor;
}

LiveMonitor::LiveMonitor(LiveOptions options, Sampler sampler, std::vector<model::Domain> domains)
    : pid_(getpid()),
      options_(std::move(options)),
      domains_(std::move(domains)),
      sampler_(std::move(sampler)),
      energy_(domains_, sampler_.sensors(), options_.history),
      recorder_(options_.sink.get()),
      inbox_([this](pid_t thread, const auto& window) { take_in(thread, window); }) {
  run_ = run_info_here(options_.tool_version);
  run_.source = "library";
  run_.command = own_command();
  run_.pid = pid_;
  run_.work_begin = HostClock::now();
  batch_.run = run_;
  batch_.domains = domains_;
  batch_.sensors = sampler_.sensors();
  sampler_.start();
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { this->run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LiveMonitor::~LiveMonitor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
  inbox_.drain();
  const std::lock_guard lock(mutex_);
  run_.work_end = HostClock::now();
  Batch last;
  last.run = run_;
  Sampled sampled;
  sampler_.stop(2s, sampled);
  last.readings = std::move(sampled.readings);
  last.warnings = std::move(sampled.warnings);
  last.clock_points.push_back(ClockPoint::now());
  batch_.append(std::move(last));
  recorder_.post(std::move(batch_));
  (void)recorder_.finish();
}

Result<void> LiveMonitor::check_process() const {
  if (getpid() == pid_) return {};
  return fail(Errc::kUnavailable,
              "this monitor was opened before the process forked; open another one in the child");
}

std::uint32_t LiveMonitor::name(std::string_view text) {
  // The lock may have been held when this process was forked off.
  return check_process() ? names_.number(text) : 0;
}

void LiveMonitor::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_.wait_for(lock, kPeriod, [this] { return stop_; });
    lock.unlock();
    inbox_.drain();
    lock.lock();
    collect();
    energy_.tidy(HostClock::now());
    flush();
  }
}

void LiveMonitor::collect() {
  Sampled sampled;
  sampler_.take(sampled);
  energy_.append(sampled.readings);
  if (!options_.sink) return;
  Batch got;
  got.readings = std::move(sampled.readings);
  got.warnings = std::move(sampled.warnings);
  batch_.append(std::move(got));
}

void LiveMonitor::take_in(pid_t thread, const spans::WindowRecord& window) {
  const std::lock_guard lock(mutex_);
  energy_.add(window.name, host(window.begin), host(window.end));
  if (!options_.sink) return;
  if (++recorded_windows_ > kMostRecorded) {
    if (recorded_windows_ == kMostRecorded + 1) {
      batch_.warnings.push_back(
          {HostClock::now(),
           fmt::format("only the first {} windows were recorded one by one", kMostRecorded)});
    }
    return;
  }
  batch_.windows.push_back({names_.text(window.name), host(window.begin), host(window.end), pid_,
                            thread, (window.flags & kDeviceTime) != 0});
}

void LiveMonitor::flush() {
  if (!options_.sink) {
    batch_ = {};
    return;
  }
  auto seen = clock_.look(ClockPoint::now());
  batch_.clock_points.insert(batch_.clock_points.end(), seen.points.begin(), seen.points.end());
  if (seen.warning) batch_.warnings.push_back({HostClock::now(), std::move(*seen.warning)});
  recorder_.post(std::exchange(batch_, {}));
}

// Until the sensors have told of `t`.
void LiveMonitor::wait_for(HostTime t, HostTime deadline, std::unique_lock<std::mutex>& lock) {
  const HostTime ready = t + energy_.delay();
  HostTime ask{};
  for (;;) {
    collect();
    const HostTime now = HostClock::now();
    if (energy_.knows(t, now) || now >= deadline || stop_) return;
    if (now < ready) {
      changed_.wait_until(lock, steady(std::min(ready, deadline)));
      continue;
    }
    if (now >= ask) {
      sampler_.read_soon();
      ask = now + kAskAgain;
    }
    changed_.wait_for(lock, kPoll);
  }
}

Result<EnergySource::Energies> LiveMonitor::energy(HostTime begin, HostTime end, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  if (end < begin) return fail(Errc::kInvalidArgument, "the window ends before it begins");
  const HostTime deadline = HostClock::now() + timeout;
  inbox_.drain();  // edges sharpen the timeline
  std::unique_lock lock(mutex_);
  wait_for(end, deadline, lock);
  return energy_.energy(begin, end);
}

Result<analysis::WindowTotal> LiveMonitor::total(std::uint32_t name, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  const HostTime deadline = HostClock::now() + timeout;
  inbox_.drain();
  std::unique_lock lock(mutex_);
  const auto end = energy_.latest_end(name);
  if (!end) {
    return fail(Errc::kNotFound,
                fmt::format("no window named '{}' has ended yet", names_.text(name)));
  }
  wait_for(*end, deadline, lock);
  return *energy_.total(name);
}

}  // namespace jouleprof::session
