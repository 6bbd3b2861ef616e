// The sampling, live engine and thread of a LiveMonitor.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "session/live/live_engine.h"
#include "session/sampling/recorded_sampling.h"
#include "session/windows/energy_source.h"
#include "session/windows/window_handover.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

struct LiveCoreOptions {
  Duration history{};  // as EnergyLedger's
  std::string tool_version;
  std::unique_ptr<Sink> sink;                // nullptr: records nothing
  std::unique_ptr<WindowHandover> handover;  // nullptr: windows are this process's own
  // Of this process and its descendants, where there is a sink.
  Duration process_period = std::chrono::seconds{1};
};

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

  // In a forked child, which does nothing else with it.
  void abandon() noexcept {
    if (options_.handover) options_.handover->abandon();
  }

 private:
  void run();
  void look();
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

  const std::unique_ptr<spans::OpenWindows> open_;  // null: nothing is recorded
  spans::WindowInbox inbox_;  // never drained with the mutex held: its consumer takes it
  std::optional<ProcessWatch> processes_;  // of the thread; absent: nothing is recorded
  std::thread thread_;
};

}  // namespace jouleprof::session
