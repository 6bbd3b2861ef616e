// Where a program gets the energy of its own windows from.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/live/window_totals.h"
#include "base/result.h"
#include "meters/meter.h"
#include "model/domain.h"
#include "model/snapshot.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/visible_devices.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

// Thread safety: all functions from any thread. In a forked child nothing is taken in and every
// answer is an error (unavailable).
class EnergySource {
 public:
  using Energies = std::vector<Result<model::Measurement>>;  // by domain

  virtual ~EnergySource() = default;
  EnergySource(const EnergySource&) = delete;
  EnergySource& operator=(const EnergySource&) = delete;

  virtual const std::vector<model::Domain>& domains() const = 0;  // fixed
  // The machine's boards as this program's runtime (CUDA, ROCm) numbers them, among them those that
  // domains() leaves out. Fixed.
  virtual const std::vector<model::DomainId>& visible_boards() const = 0;
  // Whose sampler this was when it was opened: "own", "run" when it is that of `jouleprof run`
  // around this program, "service" when it is that of a service that shares its sensors.
  virtual std::string_view kind() const = 0;

  // A number for a window's name, the same for the same text; 0 is the empty name.
  virtual std::uint32_t name(std::string_view text) = 0;
  // A window that has begun: the recording names it if the program ends before it is forgotten, as
  // all are to be that end. Neither waits nor allocates.
  virtual void begin(const spans::OpenWindow& window) noexcept = 0;
  virtual void forget(const spans::OpenWindow& window) noexcept = 0;
  // A window that has ended. Neither waits nor allocates, beyond a thread's first.
  virtual void add(const spans::WindowRecord& window) noexcept = 0;

  // Waits up to `timeout` until the sensors have reported `end`; the answer has what is known by
  // then. Errors: invalid_argument (end before begin), unavailable.
  virtual Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) = 0;
  // All windows of one name together. Errors: not_found (no window of that name), unavailable.
  virtual Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) = 0;
  // What is known now, with energies since the source was opened. Errors: unavailable, timeout.
  virtual Result<model::Snapshot> snapshot() = 0;
  // What the reader of its figures should know, each once. Empty in a forked child.
  virtual std::vector<std::string> warnings() = 0;

 protected:
  EnergySource() = default;

  // Threads of a source do not exist in a forked child, and its locks may be held forever there.
  bool in_forked_child() const noexcept { return getpid() != pid_; }
  // Errors: unavailable, in a forked child.
  Result<void> check_process() const {
    if (!in_forked_child()) return {};
    return fail(Errc::kUnavailable,
                "this monitor was opened before the process forked; open another one in the child");
  }

 private:
  const pid_t pid_ = getpid();
};

class LiveCore;

struct LiveOptions {
  Duration history = std::chrono::minutes{10};  // as EnergyLedger's
  DeviceChoice devices;
  Environment environment = process_environment;
  std::string tool_version;
  // Opens what readings and windows are recorded into; nullptr: they are not. Called only when the
  // monitor can measure something. The sink is the monitor's until it is gone.
  std::function<Result<std::unique_ptr<Sink>>()> open_sink;
  // The socket of the `jouleprof run` around this program, whose readings the meters give: it
  // records the windows. Empty: there is none.
  std::filesystem::path session;
  bool is_of_service = false;                 // as MeterSet's, of the meters
  std::vector<model::DomainId> not_measured;  // left out where they are not named
};

// Measures the energy of a program's windows from within the program, with a sampler of its own.
// Deleted in a forked child, it leaves everything to the parent.
class LiveMonitor final : public EnergySource {
 public:
  // Errors: invalid_argument (unknown device), unavailable (nothing of what was chosen can be
  // measured, and there is no session; the message says why), those of `open_sink` and of
  // WindowHandover::connect.
  static Result<std::unique_ptr<LiveMonitor>> open(
      LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters);
  ~LiveMonitor() override;

  const std::vector<model::Domain>& domains() const override;
  const std::vector<model::DomainId>& visible_boards() const override { return visible_boards_; }
  std::string_view kind() const override { return kind_; }
  std::uint32_t name(std::string_view text) override;
  void begin(const spans::OpenWindow& window) noexcept override;
  void forget(const spans::OpenWindow& window) noexcept override;
  void add(const spans::WindowRecord& window) noexcept override;
  Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) override;
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) override;
  Result<model::Snapshot> snapshot() override;
  std::vector<std::string> warnings() override;

 private:
  LiveMonitor(std::unique_ptr<LiveCore> core, std::vector<model::DomainId> visible_boards,
              std::string_view kind);

  const std::vector<model::DomainId> visible_boards_;
  const std::string_view kind_;
  std::unique_ptr<LiveCore> core_;  // never touched in a forked child, but to hand a window in
};

// A program's monitor that goes on with sensors which appear after it was opened.
// The domains stay those of the monitor that it is made of. Where that has a domain for GPUs
// without a sensor, because their driver was not loaded, it has the energy of all boards that
// appear, from then on: windows that began before, and totals with such a window, have none, with
// the reason. A log has each board that appears, from then on, also next to others. Other sensors
// that appear are named in the warnings.
class GrowingMonitor final : public EnergySource {
 public:
  // Opens a monitor of these boards ("GPU-..."), and of nothing else. It records into the log of
  // `first`, if that has one.
  using OpenBoards =
      std::function<Result<std::unique_ptr<EnergySource>>(const std::vector<std::string>& names)>;

  GrowingMonitor(std::unique_ptr<EnergySource> first, OpenBoards open_boards, bool has_log);

  // From one thread: what has appeared, by name ("GPU-..." of a board). May take as long as the
  // driver.
  void add_appeared(const std::vector<std::string>& names);

  const std::vector<model::Domain>& domains() const override { return first_->domains(); }
  const std::vector<model::DomainId>& visible_boards() const override {
    return first_->visible_boards();
  }
  std::string_view kind() const override { return first_->kind(); }
  std::uint32_t name(std::string_view text) override;
  void begin(const spans::OpenWindow& window) noexcept override { first_->begin(window); }
  void forget(const spans::OpenWindow& window) noexcept override { first_->forget(window); }
  void add(const spans::WindowRecord& window) noexcept override;
  Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) override;
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) override;
  Result<model::Snapshot> snapshot() override;
  std::vector<std::string> warnings() override;

 private:
  EnergySource* boards() const noexcept { return boards_.load(std::memory_order_acquire); }

  const std::unique_ptr<EnergySource> first_;
  const OpenBoards open_boards_;
  const bool has_log_;
  std::optional<std::size_t> place_;  // of the domain for GPUs without a sensor

  std::mutex mutex_;                // guards what follows
  std::vector<std::string> names_;  // of windows, by number from 1 on: `boards` has the same
  std::unique_ptr<EnergySource> owned_;
  std::vector<std::unique_ptr<EnergySource>> logged_;  // what only the log has
  std::set<std::string> not_measured_;                 // names that appeared
  std::string measured_;                               // names of boards
  std::set<std::string> recorded_;                     // names of those in the log alone
  std::string trouble_;

  HostTime since_{};                            // of `boards`; set before it
  std::atomic<EnergySource*> boards_{nullptr};  // owned_, once it has all names
};

}  // namespace jouleprof::session
