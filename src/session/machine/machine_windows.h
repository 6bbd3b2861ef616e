// Windows that other programs begin and end by name, on the service's timeline.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/live/live_energy.h"
#include "analysis/live/machine_state.h"

namespace jouleprof::session {

// A window's energy is computed once, when the sensors have reported its interval.
// Thread safety: begin(), end() and find() may be called from any thread; the rest from the one of
// the service.
class MachineWindows {
 public:
  struct Options {
    std::size_t most_open = 64;  // of one caller
    std::size_t most_open_of_all = 1024;
    std::size_t most_ended = 1000;  // beyond it the oldest of the caller with most is forgotten
    Duration longest = std::chrono::hours{12};  // an older one is forgotten
    Duration keep_ended = std::chrono::minutes{60};
    std::size_t longest_name = 128;
  };
  MachineWindows() : MachineWindows(Options{}) {}
  explicit MachineWindows(const Options& options) : options_(options) {}

  // Called from the thread that ends a window; it may not call back.
  void on_end(std::function<void()> action) {
    const std::lock_guard lock(mutex_);
    on_end_ = std::move(action);
  }

  // Names are 1 to 128 letters, digits, '.', '_' and '-'. A window of this name that ended is
  // forgotten. Errors: invalid_argument for the name; unsupported if it is open; unavailable if too
  // many of this caller are.
  Result<analysis::MachineWindow> begin(std::string_view name, HostTime now,
                                        std::string_view caller = {});
  // Ends a window; gives what is known of it. Errors: not_found.
  Result<analysis::MachineWindow> end(std::string_view name, HostTime now);
  Result<analysis::MachineWindow> find(std::string_view name) const;

  // Edges that were not taken yet.
  std::vector<HostTime> take_marks();
  // The latest end of those that wait for their energy.
  std::optional<HostTime> wanted() const;
  // The earliest begin of those without their energy: what is before is not needed.
  std::optional<HostTime> oldest() const;
  // Computes the energy of those that ended up to `known`.
  void settle(HostTime known, analysis::LiveEnergy& ledger);
  // Another service measures from now on, perhaps other devices: those that ended are forgotten,
  // and those that are open will have no energy.
  void interrupt();
  // Forgets those that are too old.
  void tidy(HostTime now);

 private:
  struct Begun {
    analysis::MachineWindow window;
    std::string caller;
  };
  Result<void> check(std::string_view name) const;

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> on_end_;
  std::map<std::string, Begun, std::less<>> windows_;
  std::vector<HostTime> marks_;
};

}  // namespace jouleprof::session
