// Which processes use the GPUs of the kernel's graphics drivers: /proc/PID/fdinfo, and AMD's kfd.
// https://docs.kernel.org/gpu/drm-usage-stats.html
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/process/process.h"

namespace jouleprof::meters::hwmon {

// One open file of a graphics driver, as fdinfo shows it.
struct GpuClient {
  std::string bus_address;
  std::uint64_t id = 0;  // the same for all files that share it, also in other processes
  // Time of the engines that compute (not of copies and video), in ns; of xe cycles, of as many as
  // `total_cycles` in the same time.
  std::optional<std::uint64_t> busy;
  std::optional<std::uint64_t> total_cycles;
  std::optional<std::uint64_t> memory_bytes;  // on the board
};

// Absent for a file that is none, or without its device.
std::optional<GpuClient> parse_fdinfo(std::string_view text);

// Thread safety: none.
class GpuClients {
 public:
  // `domains`: of the boards, by their address on the bus.
  GpuClients(std::filesystem::path root, std::map<std::string, model::DomainId> domains);

  // Whether the machine has a /proc to look at.
  bool is_possible() const;

  // The processes that use the boards now. Utilisation is the mean since the call before; absent at
  // the first, and for those that compute by ROCm, whose queues the kernel does not time. Where
  // other users' files cannot be read, pid 0 stands for all of them, without a utilisation. Takes
  // about 20 us a process of the machine.
  std::vector<model::GpuProcessUse> read(HostTime now);

 private:
  struct Count {
    std::uint64_t busy = 0;
    std::uint64_t total_cycles = 0;
    HostTime at{};
  };
  struct Sum {
    std::optional<double> utilisation;
    std::optional<std::uint64_t> memory_bytes;
  };
  using Uses = std::map<std::pair<pid_t, model::DomainId>, Sum>;
  std::optional<double> share_of(const GpuClient& client, HostTime now);
  void add_kfd(Uses& uses) const;

  std::filesystem::path root_;
  std::map<std::string, model::DomainId> domains_;
  std::map<std::string, model::DomainId> kfd_ids_;  // the kfd's number of a board
  std::optional<HostTime> last_;
  std::map<std::pair<std::string, std::uint64_t>, Count> counts_;  // by address and client
};

}  // namespace jouleprof::meters::hwmon
