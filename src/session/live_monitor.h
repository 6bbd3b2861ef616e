// Measures the energy of a program's windows from within the program, with a sampler of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analysis/live_energy.h"
#include "meters/meter.h"
#include "session/clock_watch.h"
#include "session/energy_source.h"
#include "session/name_table.h"
#include "session/recorder.h"
#include "session/sampler.h"
#include "session/visible_devices.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

struct LiveOptions {
  Duration history = std::chrono::minutes{10};  // as EnergyLedger's
  std::vector<std::string> devices;             // as select_devices(); empty: all that it can see
  Environment environment = process_environment;
  std::string tool_version;
  // Records readings and windows too; nullptr: not. The monitor's until it is gone.
  std::unique_ptr<Sink> sink;
};

class LiveMonitor final : public EnergySource {
 public:
  // Errors: invalid_argument (unknown device), unavailable (nothing of what was chosen can be
  // measured; the message says why).
  static Result<std::unique_ptr<LiveMonitor>> open(
      LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters);
  ~LiveMonitor() override;

  const std::vector<model::Domain>& domains() const override { return domains_; }
  std::string_view kind() const override { return "own"; }
  std::uint32_t name(std::string_view text) override;
  void add(const spans::WindowRecord& window) noexcept override { inbox_.push(window); }
  Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) override;
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) override;

 private:
  LiveMonitor(LiveOptions options, Sampler sampler, std::vector<model::Domain> domains);

  Result<void> check_process() const;
  void run();
  void collect();
  void take_in(pid_t thread, const spans::WindowRecord& window);
  void wait_for(HostTime t, HostTime deadline, std::unique_lock<std::mutex>& lock);
  void flush();

  const pid_t pid_;
  const LiveOptions options_;
  const std::vector<model::Domain> domains_;
  NameTable names_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Sampler sampler_;
  analysis::LiveEnergy energy_;
  ClockWatch clock_;
  Recorder recorder_;
  model::RunInfo run_;
  Batch batch_;  // to be recorded
  std::uint64_t recorded_windows_ = 0;
  bool stop_ = false;

  spans::WindowInbox inbox_;  // its consumer locks nothing: drained under the mutex, or by a thread
  std::thread thread_;
};

}  // namespace jouleprof::session
