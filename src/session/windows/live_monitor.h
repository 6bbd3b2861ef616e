// Measures the energy of a program's windows from within the program, with a sampler of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "meters/meter.h"
#include "session/sampling/sink.h"
#include "session/sampling/visible_devices.h"
#include "session/windows/energy_source.h"

namespace jouleprof::session {

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
  std::vector<model::DomainId> not_measured;  // left out where they are not named
};

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

}  // namespace jouleprof::session
