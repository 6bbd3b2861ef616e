// Windows of a program under `jouleprof run`: their energies come from the tool's readings, and its
// recording keeps them. This is the program's end of the window protocol.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "session/sampling/visible_devices.h"
#include "session/windows/energy_source.h"

namespace jouleprof::session {

class RunLink;

struct RunMonitorOptions {
  DeviceChoice devices;
  Environment environment = process_environment;
};

// Has a small thread that sends windows five times a second. When the tool is gone, energies are
// unavailable and windows are forgotten.
class RunMonitor final : public EnergySource {
 public:
  // `socket`: what JOULEPROF_SESSION says. Errors: unavailable (no process listens there),
  // unsupported (the tool speaks another version), invalid_argument (unknown device), timeout (it
  // is stopped).
  static Result<std::unique_ptr<RunMonitor>> connect(const std::filesystem::path& socket,
                                                     RunMonitorOptions options = {});
  ~RunMonitor() override;

  const std::vector<model::Domain>& domains() const override { return domains_; }
  const std::vector<model::DomainId>& visible_boards() const override { return visible_boards_; }
  std::string_view kind() const override { return "run"; }
  std::uint32_t name(std::string_view text) override;
  void begin(const spans::OpenWindow& window) noexcept override;
  void forget(const spans::OpenWindow& window) noexcept override;
  void add(const spans::WindowRecord& window) noexcept override;
  Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) override;
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) override;
  Result<model::Snapshot> snapshot() override;
  std::vector<std::string> warnings() override { return {}; }  // the tool shows them

 private:
  RunMonitor(std::unique_ptr<RunLink> link, std::vector<model::Domain> domains,
             std::vector<model::DomainId> visible_boards);

  const std::vector<model::Domain> domains_;
  const std::vector<model::DomainId> visible_boards_;
  const HostTime begin_ = HostClock::now();
  std::unique_ptr<RunLink> link_;  // never touched in a forked child
};

}  // namespace jouleprof::session
