#include "session/windows/live_monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "session/live/live_engine.h"
#include "session/sampling/recorded_sampling.h"
#include "session/windows/window_handover.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 500ms;    // between two looks for windows and readings
constexpr Duration kHandover = 200ms;  // the same where another process records the windows
constexpr Duration kRemainder = 20ms;  // to the look for what was less than a packet of windows
constexpr Duration kAskAgain = 50ms;   // while an answer is awaited
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

constexpr Duration kProcessPeriod = 900ms;  // of those on GPUs, of a recording
constexpr Duration kFirstReadings = 1s;     // the longest that open() waits for them
constexpr Duration kHubsHistory = 1s;       // a hub that records has read within that time

// Why nothing can be measured.
std::string reasons(const std::vector<model::Domain>& domains) {
  std::string text;
  for (const auto& domain : domains) {
    if (domain.unavailable_reason.empty()) continue;
    if (!text.empty()) text += "; ";
    const bool is_board = domain.kind == model::DomainKind::kGpu;
    text += fmt::format("{}{}: {}", is_board ? "" : fmt::format("{} ", to_string(domain.kind)),
                        domain.device, domain.unavailable_reason);
  }
  return text.empty() ? "no sensor was found" : text;
}

}  // namespace

struct LiveCoreOptions {
  Duration history{};  // as EnergyLedger's
  std::string tool_version;
  std::unique_ptr<Sink> sink;                // nullptr: records nothing
  std::unique_ptr<WindowHandover> handover;  // nullptr: windows are this process's own
  // Of this process and its descendants, where there is a sink.
  Duration process_period = std::chrono::seconds{1};
};

// The sampling, live engine and thread of a LiveMonitor.
// Samples from the constructor to the destructor. Does not check whether the process has forked.
// The program that it is part of outlives a lack of memory here, or any other exception. What was
// known of energies is then lost: windows, and names, from before are an error that says why, those
// from then on are measured.
// Thread safety: all functions from any thread.
class LiveCore {
 public:
  LiveCore(LiveCoreOptions options, Sampler sampler, std::vector<model::Domain> domains,
           const std::vector<std::string>& warnings);
  LiveCore(const LiveCore&) = delete;
  LiveCore& operator=(const LiveCore&) = delete;
  ~LiveCore();

  const std::vector<model::Domain>& domains() const { return sampling_.domains(); }
  // Until the sensors have reported `t`, at most `timeout`.
  void wait_for(HostTime t, Duration timeout);

  // As EnergySource's.
  std::uint32_t name(std::string_view text);
  void begin(const spans::OpenWindow& window) noexcept { inbox_.begin(window); }
  void forget(const spans::OpenWindow& window) noexcept { inbox_.forget(window); }
  void add(const spans::WindowRecord& window) noexcept { inbox_.push(window); }
  Result<EnergySource::Energies> energy(HostTime begin, HostTime end, Duration timeout);
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout);
  Result<model::Snapshot> snapshot();
  std::vector<std::string> warnings();

 private:
  void run();
  void turn();
  void end();
  template <typename Work>
  void with_live(const Work& work);
  template <typename Work>
  auto ask(const Work& work) -> decltype(work(std::declval<std::unique_lock<std::mutex>&>()));
  void lose_live(const char* why) noexcept;
  void begin_anew();
  tl::unexpected<Error> lost() const;
  void look_at_processes(std::unique_lock<std::mutex>& lock, bool last);
  void record_open_windows();
  std::vector<model::OpenWindow> open_windows() const;
  void take_in(const spans::WindowInbox::Origin& origin, const spans::WindowRecord& window);
  void warn_of_names();
  void wait_for(HostTime t, HostTime deadline, std::unique_lock<std::mutex>& lock);

  const pid_t pid_;
  const LiveCoreOptions options_;
  NameTable names_;

  struct Loss {
    std::string why;
    HostTime at{};
    std::uint32_t names = 0;  // how many there were: their totals miss windows
  };

  std::mutex mutex_;  // guards what follows, but sampling_'s domains
  std::condition_variable changed_;
  std::optional<LiveEngine> live_;  // absent: lost, and not begun anew yet
  std::optional<Loss> loss_;        // the latest
  std::string trouble_;             // of the thread's last round
  RecordedSampling sampling_;
  model::RunInfo run_;
  HostTime begin_{};
  WindowQuota quota_;
  std::vector<model::GpuProcessUse> uses_;  // since the last look at processes
  HostTime next_read_{};                    // of all sensors, for an answer
  bool stop_ = false;
  bool has_batch_ = false;  // of windows to be handed over, before the thread's next look

  const std::unique_ptr<spans::OpenWindows> open_;  // null: nothing is recorded
  spans::WindowInbox inbox_;  // never drained with the mutex held: its consumer takes it
  std::optional<ProcessWatch> processes_;  // of the thread; absent: nothing is recorded
  std::thread thread_;
};

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
  const Duration period = options_.handover ? kHandover : kPeriod;
  HostTime next = HostClock::now() + period;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, steady(next), [this] { return stop_ || has_batch_; });
      if (stop_) return;
      has_batch_ = false;
    }
    const bool is_due = HostClock::now() >= next;
    try {
      if (is_due) {
        turn();
      } else {
        options_.handover->send(names_, HostClock::now() + kSending);
        next = std::min(next, HostClock::now() + kRemainder);
      }
    } catch (const std::exception& e) {
      trouble_ = reason_of(e);
    }
    if (is_due) next = HostClock::now() + period;
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

void LiveCore::turn() {
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
    if (options_.handover) options_.handover->send(names_, HostClock::now() + kSending);
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
  // The rings of a program that dies have its newest windows: what was taken from them is sent
  // before they are full again.
  if (options_.handover && options_.handover->take_in(origin, window) && !has_batch_) {
    has_batch_ = true;
    changed_.notify_all();
  }
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

Result<std::unique_ptr<LiveMonitor>> LiveMonitor::open(
    LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  auto joined = joined_domains(meters);
  auto choice = choose_devices(joined, options.devices, options.environment);
  if (!choice) return forward_error(choice);
  if (!options.devices.is_named()) {
    for (const auto id : options.not_measured)
      choice->chosen.at(static_cast<std::size_t>(id)) = false;
  }
  const Duration process_period = options.open_sink ? kProcessPeriod : Duration{};
  Sampler sampler(std::move(meters), process_period, [&](const model::Domain& domain) {
    return choice->chosen[static_cast<std::size_t>(domain.id)];
  });
  const bool any = std::ranges::any_of(sampler.sensors(),
                                       [](auto& s) { return s.kind != model::SensorKind::kGauge; });
  const bool is_under_run = !options.session.empty();
  if (!any && !is_under_run) {
    return fail(Errc::kUnavailable,
                fmt::format("nothing can be measured here ({}); `jouleprof doctor` says what would "
                            "help",
                            reasons(sampler.domains())));
  }
  std::unique_ptr<Sink> sink;
  if (options.open_sink) {
    auto opened = options.open_sink();
    if (!opened) return forward_error(opened);
    sink = std::move(*opened);
  }
  auto domains = sampler.domains();
  std::unique_ptr<WindowHandover> handover;
  if (is_under_run) {
    std::vector<model::DomainId> ids;
    for (const auto& domain : domains) ids.push_back(domain.id);
    auto connected = WindowHandover::connect(options.session, std::move(ids));
    if (!connected) return forward_error(connected);
    handover = std::move(*connected);
  }
  for (auto& domain : domains) domain.visible = joined[static_cast<std::size_t>(domain.id)].visible;
  auto core = std::make_unique<LiveCore>(
      LiveCoreOptions{.history = options.history,
                      .tool_version = std::move(options.tool_version),
                      .sink = std::move(sink),
                      .handover = std::move(handover)},
      std::move(sampler), std::move(domains),
      // The tool shows those of its command.
      is_under_run ? std::vector<std::string>{} : choice->visibility.warnings);
  // A hub that records sends what was read before.
  core->wait_for(HostClock::now() - (is_under_run ? kHubsHistory : Duration{}), kFirstReadings);
  return std::unique_ptr<LiveMonitor>(new LiveMonitor(std::move(core), choice->visibility.order,
                                                      is_under_run            ? "run"
                                                      : options.is_of_service ? "service"
                                                                              : "own"));
}

LiveMonitor::LiveMonitor(std::unique_ptr<LiveCore> core,
                         std::vector<model::DomainId> visible_boards, std::string_view kind)
    : visible_boards_(std::move(visible_boards)), kind_(kind), core_(std::move(core)) {}

LiveMonitor::~LiveMonitor() {
  if (in_forked_child()) (void)core_.release();
}

const std::vector<model::Domain>& LiveMonitor::domains() const { return core_->domains(); }

std::uint32_t LiveMonitor::name(std::string_view text) {
  return check_process() ? core_->name(text) : 0;
}

void LiveMonitor::begin(const spans::OpenWindow& window) noexcept { core_->begin(window); }

void LiveMonitor::forget(const spans::OpenWindow& window) noexcept { core_->forget(window); }

void LiveMonitor::add(const spans::WindowRecord& window) noexcept { core_->add(window); }

Result<EnergySource::Energies> LiveMonitor::energy(HostTime begin, HostTime end, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->energy(begin, end, timeout);
}

Result<analysis::WindowTotal> LiveMonitor::total(std::uint32_t name, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->total(name, timeout);
}

Result<model::Snapshot> LiveMonitor::snapshot() {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->snapshot();
}

std::vector<std::string> LiveMonitor::warnings() {
  return in_forked_child() ? std::vector<std::string>{} : core_->warnings();
}

}  // namespace jouleprof::session
