#include "model/device/guest_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace jouleprof::model {
namespace {

constexpr std::string_view kSchema = "jouleprof.guest/1";
constexpr std::int64_t kLargest = std::int64_t{1} << 62;

}  // namespace

std::optional<Energy> GuestFile::energy(DomainKind kind) const {
  const auto found = std::find_if(energies.begin(), energies.end(),
                                  [kind](const auto& e) { return e.first == kind; });
  return found == energies.end() ? std::nullopt : std::optional(found->second);
}

std::string guest_file_text(const GuestFile& file) {
  std::string out = fmt::format("{}\ntime {}\n", kSchema, file.time.time_since_epoch().count());
  for (const auto& [kind, energy] : file.energies) {
    out += fmt::format("{} {}\n", to_string(kind), energy.microjoules());
  }
  return out;
}

Result<GuestFile> parse_guest_file(std::string_view text) {
  const auto damaged = [] {
    return fail(Errc::kCorrupt, "it is no file that `jouleprof serve --guest` writes");
  };
  const auto lines = split(text, '\n');
  if (lines.front() != kSchema) return damaged();
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

}  // namespace jouleprof::model
