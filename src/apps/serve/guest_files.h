// Hands virtual machines their share of the energy: one file for each, which its guest reads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/live/machine_state.h"
#include "base/result.h"
#include "model/device/guest_file.h"

namespace jouleprof::serve {

// Thread safety: none.
class GuestFiles {
 public:
  // Each "UNIT=FILE"; in UNIT, the systemd unit of a virtual machine, `*` stands for any text, as
  // in "machine-qemu*web.scope". A file that exists is continued. Errors: invalid_argument;
  // corrupt for a file of another kind; as read_file's.
  static Result<GuestFiles> open(const std::vector<std::string>& guests);

  bool empty() const { return guests_.empty(); }

  // After a tick. The energies are the dynamic ones of the family of units, of CPU and DRAM.
  // Errors: as replace_file's, of the first file that cannot be written; the others are.
  Result<void> write(const analysis::MachineState& state, const analysis::EnergyAccounts& accounts);

 private:
  struct Guest {
    std::string unit;
    std::filesystem::path file;
    std::map<model::DomainKind, Energy> energies;
    std::map<std::pair<std::string, std::size_t>, Energy> seen;  // by unit and domain
  };
  std::vector<Guest> guests_;
  bool is_first_ = true;
};

}  // namespace jouleprof::serve
