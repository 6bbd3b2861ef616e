// A virtual machine's share of its host's energy, as a file that the host writes for the guest.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

// What the file says: up to `time` the guest has used these energies. They never fall while one
// machine runs.
struct GuestFile {
  RealTime time{};
  std::vector<std::pair<DomainKind, Energy>> energies;  // cpu, dram; each once

  std::optional<Energy> energy(DomainKind kind) const;

  bool operator==(const GuestFile&) const = default;
};

// A line each: "jouleprof.guest/1", "time NANOSECONDS" since 1970, "cpu MICROJOULES", "dram ...".
std::string guest_file_text(const GuestFile& file);
// Lines that are unknown are left out. Errors: corrupt.
Result<GuestFile> parse_guest_file(std::string_view text);

// How often the host writes it, and the guest reads it.
inline constexpr Duration kGuestPeriod = std::chrono::seconds{1};

}  // namespace jouleprof::model
