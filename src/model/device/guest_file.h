// A virtual machine's share of its host's energy, as a file that the host writes for the guest.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

// What the file says: up to `time` the guest has used these energies. They never fall while one
// machine runs.
struct GuestFile {
  RealTime time{};
  std::vector<std::pair<DomainKind, Energy>> energies;  // cpu, dram; each once

  std::optional<Energy> energy(DomainKind kind) const {
    const auto found =
        std::ranges::find_if(energies, [kind](const auto& e) { return e.first == kind; });
    return found == energies.end() ? std::nullopt : std::optional(found->second);
  }

  bool operator==(const GuestFile&) const = default;
};

inline constexpr std::string_view kGuestSchema = "jouleprof.guest/1";

// A line each: "jouleprof.guest/1", "time NANOSECONDS" since 1970, "cpu MICROJOULES", "dram ...".
inline std::string guest_file_text(const GuestFile& file) {
  std::string out =
      fmt::format("{}\ntime {}\n", kGuestSchema, file.time.time_since_epoch().count());
  for (const auto& [kind, energy] : file.energies) {
    out += fmt::format("{} {}\n", to_string(kind), energy.microjoules());
  }
  return out;
}

// Lines that are unknown are left out. Errors: corrupt.
inline Result<GuestFile> parse_guest_file(std::string_view text) {
  const auto damaged = [] {
    return fail(Errc::kCorrupt, "it is no file that `jouleprof serve --guest` writes");
  };
  constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  const auto lines = split(text, '\n');
  if (lines.front() != kGuestSchema) return damaged();
  GuestFile file;
  for (const auto line : lines) {
    const auto words = split_blanks(line);
    if (words.size() != 2) continue;
    const bool is_time = words[0] == "time";
    const auto kind = words[0] == "cpu"    ? std::optional(DomainKind::kCpu)
                      : words[0] == "dram" ? std::optional(DomainKind::kDram)
                                           : std::nullopt;
    if (!is_time && !kind) continue;
    const auto value = parse_integer(words[1]);
    if (!value || *value < 0 || *value > kLargest) return damaged();
    if (is_time) {
      file.time = RealTime{Duration{*value}};
    } else if (!file.energy(*kind)) {
      file.energies.emplace_back(*kind, Energy::microjoules(*value));
    } else {
      return damaged();
    }
  }
  if (file.time == RealTime{}) return damaged();
  return file;
}

// How often the host writes it, and the guest reads it.
inline constexpr Duration kGuestPeriod = std::chrono::seconds{1};

}  // namespace jouleprof::model
