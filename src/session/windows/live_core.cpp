#include "session/windows/live_core.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 500ms;   // between two looks for windows and readings
constexpr Duration kAskAgain = 50ms;  // while an answer is awaited
constexpr Duration kPoll = 3ms;
constexpr Duration kSending = 100ms;  // of windows, to a hub that takes them slowly
constexpr Duration kPatience = 2s;    // with a meter that hangs at the end

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
      live_(std::in_place, domains, sampler.sensors(), options_.history),
      sampling_(std::move(sampler), std::move(domains), options_.sink.get(),
                [this](const Sampled& sampled) {
                  with_live([&] { live_->append(sampled.readings); });
                  if (!options_.sink) return;
                  uses_.insert(uses_.end(), sampled.gpu_processes.begin(),
                               sampled.gpu_processes.end());
                }),
      open_(options_.sink ? std::make_unique<spans::OpenWindows>() : nullptr),
      inbox_([this](const auto& origin, const auto& window) { take_in(origin, window); },
             options_.handover ? &options_.handover->rings() : nullptr,
             options_.handover ? options_.handover->rings().open() : open_.get()) {
  run_ = run_info_here(options_.tool_version);
  run_.source = "library";
  run_.command = own_command();
  run_.pid = pid_;
  begin_ = HostClock::now();
  run_.work_begin = begin_;
  sampling_.batch.run = run_;
  for (const auto& text : warnings) sampling_.warn(text);
  if (options_.sink) {
    processes_.emplace("/", options_.process_period);
    processes_->follow({.root = pid_});
  }
  sampling_.start();
  auto thread = start_thread([this] { this->run(); },
                             [this](const char* why) {
                               const std::lock_guard lock(mutex_);
                               lose_live(why);
                             });
  if (thread) {
    thread_ = std::move(*thread);
  } else {  // figures are there when they are asked for
    sampling_.warn(thread.error().message + "; nothing is recorded between two questions");
  }
}

LiveCore::~LiveCore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  try {
    end();
  } catch (const std::exception&) {  // no memory: the log is one that was cut off
  }
}

void LiveCore::end() {
  inbox_.drain();
  if (options_.handover) options_.handover->close(names_);
  std::unique_lock lock(mutex_);
  if (processes_) look_at_processes(lock, true);
  run_.work_end = HostClock::now();
  for (auto& text : model::texts_of(open_windows(), *run_.work_end, "its monitor was closed")) {
    sampling_.warn(std::move(text));
  }
  run_.open_windows.clear();
  sampling_.batch.run = run_;
  sampling_.stop(kPatience, options_.sink != nullptr);
  (void)sampling_.finish();
}

void LiveCore::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kPeriod, [this] { return stop_; })) return;
    }
    try {
      look();
    } catch (const std::exception& e) {
      trouble_ = reason_of(e);
    }
  }
}

// The sums of a ledger that an exception has left are not to be trusted.
template <typename Work>
void LiveCore::with_live(const Work& work) {
  if (!live_) return;
  try {
    work();
  } catch (const std::exception& e) {
    lose_live(reason_of(e));
  }
}

void LiveCore::lose_live(const char* why) noexcept {
  live_.reset();
  loss_ = Loss{};
  loss_->at = HostClock::now();
  loss_->names = names_.size();
  try {
    loss_->why = why;
  } catch (...) {  // no memory for the reason: it stays unnamed
  }
}

void LiveCore::begin_anew() {
  live_.emplace(sampling_.domains(), sampling_.sensors(), options_.history);
  sampling_.warn(
      fmt::format("{}: energies up to {} s after the monitor's begin are lost; windows "
                  "that began later are measured",
                  loss_->why, std::llround(seconds(loss_->at - begin_))));
}

tl::unexpected<Error> LiveCore::lost() const {
  return fail(Errc::kUnavailable,
              fmt::format("{} while the sensors were read, and the energies up to then are lost; "
                          "windows that begin now, and new names, are measured",
                          loss_->why));
}

std::uint32_t LiveCore::name(std::string_view text) {
  const std::uint32_t before = names_.size();
  const std::uint32_t number = names_.number(text);
  if (options_.handover && number >= before) options_.handover->send_names(names_);
  return number;
}

// The hub says so of a program that hands its windows over.
void LiveCore::warn_of_names() {
  if (!names_.is_full() || options_.handover) return;
  sampling_.warn(fmt::format("this program has {}", NameTable::kFull));
}

void LiveCore::look() {
  inbox_.drain();
  if (options_.handover) options_.handover->send(names_, HostClock::now() + kSending);
  std::unique_lock lock(mutex_);
  if (!live_) begin_anew();
  warn_of_names();
  if (!trouble_.empty()) {
    sampling_.warn(fmt::format("{}: readings and windows may be missing in the log", trouble_));
    trouble_.clear();
  }
  sampling_.collect();
  if (processes_ && HostClock::now() >= processes_->next()) look_at_processes(lock, false);
  with_live([this] { live_->ledger().tidy(HostClock::now()); });
  sampling_.watch_clock();
  record_open_windows();
  sampling_.flush();
}

std::vector<model::OpenWindow> LiveCore::open_windows() const {
  std::vector<model::OpenWindow> found;
  if (!open_) return found;
  for (const auto& window : open_->all()) {
    found.push_back({names_.text(window.name), host(window.begin), *run_.pid});
  }
  return found;
}

// In case that the program dies before the next look.
void LiveCore::record_open_windows() {
  auto open = open_windows();
  if (open == run_.open_windows) return;
  run_.open_windows = std::move(open);
  sampling_.batch.run = run_;
}

// The mutex is free during the look, which may take milliseconds. Called by the thread, and after
// its end.
void LiveCore::look_at_processes(std::unique_lock<std::mutex>& lock, bool last) {
  sampling_.collect();
  const auto uses = std::exchange(uses_, {});
  lock.unlock();
  Batch found;
  processes_->look(HostClock::now(), found, last);
  auto warning = processes_->add_gpu_uses(uses, found);
  lock.lock();
  if (warning) sampling_.warn(std::move(*warning));
  sampling_.batch.append(std::move(found));
}

template <typename Work>
auto LiveCore::ask(const Work& work)
    -> decltype(work(std::declval<std::unique_lock<std::mutex>&>())) {
  try {
    inbox_.drain();  // edges sharpen the timeline
    std::unique_lock lock(mutex_);
    if (!live_) begin_anew();
    return work(lock);
  } catch (const std::exception& e) {
    const std::lock_guard lock(mutex_);
    lose_live(reason_of(e));
    return lost();  // a window that ends from now on begins anew
  }
}

void LiveCore::take_in(const spans::WindowInbox::Origin& origin,
                       const spans::WindowRecord& window) {
  const std::lock_guard lock(mutex_);
  // Without memory for that, the window waits in its ring: no total may miss it.
  if (!live_) begin_anew();
  if (options_.handover) options_.handover->take_in(origin, window);
  with_live([&] { live_->ledger().add(window.name, host(window.begin), host(window.end)); });
  if (!options_.sink) return;
  const bool is_recorded = quota_.take();
  if (auto warning = quota_.warning()) sampling_.warn(std::move(*warning));
  if (!is_recorded) return;
  sampling_.batch.windows.push_back({names_.text(window.name), host(window.begin), host(window.end),
                                     pid_, origin.thread, (window.flags & kDeviceTime) != 0});
}

void LiveCore::wait_for(HostTime t, Duration timeout) {
  std::unique_lock lock(mutex_);
  wait_for(t, HostClock::now() + timeout, lock);
}

void LiveCore::wait_for(HostTime t, HostTime deadline, std::unique_lock<std::mutex>& lock) {
  if (!live_) return;
  const HostTime ready = t + live_->ledger().delay();
  for (;;) {
    sampling_.collect();
    const HostTime now = HostClock::now();
    if (!live_ || live_->ledger().knows(t, now) || stop_) return;
    // Also for one that does not wait, and will ask again.
    if (now >= ready && now >= next_read_) {
      sampling_.read_soon();
      next_read_ = now + kAskAgain;
    }
    if (now >= deadline) return;
    if (now < ready) {
      changed_.wait_until(lock, steady(std::min(ready, deadline)));
    } else {
      changed_.wait_for(lock, kPoll);
    }
  }
}

Result<EnergySource::Energies> LiveCore::energy(HostTime begin, HostTime end, Duration timeout) {
  if (end < begin) return fail(Errc::kInvalidArgument, "the window ends before it begins");
  const HostTime deadline = HostClock::now() + timeout;
  return ask([&](auto& lock) -> Result<EnergySource::Energies> {
    wait_for(end, deadline, lock);
    if (!live_ || (loss_ && begin < loss_->at)) return lost();
    return live_->ledger().reported_energy(begin, end, HostClock::now());
  });
}

Result<analysis::WindowTotal> LiveCore::total(std::uint32_t name, Duration timeout) {
  const HostTime deadline = HostClock::now() + timeout;
  return ask([&](auto& lock) -> Result<analysis::WindowTotal> {
    if (loss_ && name < loss_->names) return lost();
    const auto end = live_->ledger().latest_end(name);
    if (!end) {
      return fail(Errc::kNotFound,
                  fmt::format("no window named '{}' has ended yet", names_.text(name)));
    }
    wait_for(*end, deadline, lock);
    if (!live_) return lost();
    return *live_->ledger().total(name);
  });
}

Result<model::Snapshot> LiveCore::snapshot() {
  return ask([&](auto&) -> Result<model::Snapshot> {
    sampling_.collect();
    if (!live_) return lost();
    auto now = live_->snapshot(ClockPoint::now(), begin_);
    for (auto& domain : now.domains) {
      if (!loss_ || !domain.energy) continue;
      domain.energy.reset();
      domain.reason = lost().value().message;
    }
    return now;
  });
}

std::vector<std::string> LiveCore::warnings() {
  const std::lock_guard lock(mutex_);
  warn_of_names();
  sampling_.collect();
  std::vector<std::string> texts;
  for (const auto& warning : sampling_.warnings()) texts.push_back(warning.text);
  return texts;
}

}  // namespace jouleprof::session
