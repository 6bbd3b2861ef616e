// A program's monitor that goes on with sensors which appear after it was opened.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "session/windows/energy_source.h"

namespace jouleprof::session {

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
