// Windows of a program under `jouleprof run`: the tool's readings answer, and its recording keeps
// them. This is the program's end of the windows' protocol.
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
  std::vector<std::string> devices;  // as select_devices(); empty: all that this program can see
  Environment environment = process_environment;
};

// Has a small thread that sends windows five times a second. When the tool is gone, energies are
// unavailable and windows are forgotten.
class RunMonitor final : public EnergySource {
 public:
  // `socket`: what JOULEPROF_SESSION says. Errors: unavailable (nobody listens there), unsupported
  // (the tool speaks another version), invalid_argument (unknown device), timeout (it is stopped).
  static Result<std::unique_ptr<RunMonitor>> connect(const std::filesystem::path& socket,
                                                     RunMonitorOptions options = {});
  ~RunMonitor() override;

  const std::vector<model::Domain>& domains() const override { return domains_; }
  const std::vector<model::DomainId>& visible_boards() const override { return visible_boards_; }
  std::string_view kind() const override { return "run"; }
  std::uint32_t name(std::string_view text) override;
  void add(const spans::WindowRecord& window) noexcept override;
  Result<Energies> energy(HostTime begin, HostTime end, Duration timeout) override;
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration timeout) override;

 private:
  RunMonitor(std::unique_ptr<RunLink> link, std::vector<model::Domain> domains,
             std::vector<model::DomainId> visible_boards);

  const std::vector<model::Domain> domains_;
  const std::vector<model::DomainId> visible_boards_;
  std::unique_ptr<RunLink> link_;  // never touched in a forked child
};

}  // namespace jouleprof::session
