#include "session/windows/live_core.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "session/sampling/run_info.h"
#include "session/sampling/threads.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 500ms;   // of looking after windows and readings
constexpr Duration kAskAgain = 50ms;  // while an answer is awaited
constexpr Duration kPoll = 3ms;

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

std::vector<std::string> own_command() {
  std::vector<std::string> words;
  const std::string text = read_file("/proc/self/cmdline").value_or("");
  for (const auto word : split(text, '\0')) words.emplace_back(word);
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

LiveCore::LiveCore(LiveCoreOptions options, Sampler sampler, std::vector<model::Domain> domains,
                   const std::vector<std::string>& warnings)
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
  for (const auto& text : warnings) batch_.warnings.push_back({HostClock::now(), text});
  sampler_.start();
  thread_ = start_without_signals([this] { this->run(); });
}

LiveCore::~LiveCore() {
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

void LiveCore::run() {
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

void LiveCore::collect() {
  Sampled sampled;
  sampler_.take(sampled);
  energy_.append(sampled.readings);
  if (!options_.sink) return;
  Batch got;
  got.readings = std::move(sampled.readings);
  got.warnings = std::move(sampled.warnings);
  batch_.append(std::move(got));
}

void LiveCore::take_in(pid_t thread, const spans::WindowRecord& window) {
  const std::lock_guard lock(mutex_);
  energy_.add(window.name, host(window.begin), host(window.end));
  if (!options_.sink) return;
  const bool is_recorded = quota_.take();
  if (auto warning = quota_.warning()) {
    batch_.warnings.push_back({HostClock::now(), std::move(*warning)});
  }
  if (!is_recorded) return;
  batch_.windows.push_back({names_.text(window.name), host(window.begin), host(window.end), pid_,
                            thread, (window.flags & kDeviceTime) != 0});
}

void LiveCore::flush() {
  if (!options_.sink) {
    batch_ = {};
    return;
  }
  auto seen = clock_.look(ClockPoint::now());
  batch_.clock_points.insert(batch_.clock_points.end(), seen.points.begin(), seen.points.end());
  if (seen.warning) batch_.warnings.push_back({HostClock::now(), std::move(*seen.warning)});
  recorder_.post(std::exchange(batch_, {}));
}

void LiveCore::wait_for(HostTime t, Duration timeout) {
  std::unique_lock lock(mutex_);
  wait_for(t, HostClock::now() + timeout, lock);
}

void LiveCore::wait_for(HostTime t, HostTime deadline, std::unique_lock<std::mutex>& lock) {
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

Result<EnergySource::Energies> LiveCore::energy(HostTime begin, HostTime end, Duration timeout) {
  if (end < begin) return fail(Errc::kInvalidArgument, "the window ends before it begins");
  const HostTime deadline = HostClock::now() + timeout;
  inbox_.drain();  // edges sharpen the timeline
  std::unique_lock lock(mutex_);
  wait_for(end, deadline, lock);
  return energy_.energy(begin, end);
}

Result<analysis::WindowTotal> LiveCore::total(std::uint32_t name, Duration timeout) {
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
