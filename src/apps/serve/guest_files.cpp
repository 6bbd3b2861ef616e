#include "apps/serve/guest_files.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <optional>

#include "base/file.h"

namespace jouleprof::serve {
namespace {

constexpr std::size_t kLargestFile = 4096;

}  // namespace

Result<GuestFiles> GuestFiles::open(const std::vector<std::string>& guests) {
  GuestFiles out;
  for (const auto& text : guests) {
    const auto mark = text.rfind('=');
    if (mark == std::string::npos || mark == 0 || mark + 1 == text.size()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--guest {}: give UNIT=FILE, such as "
                              "'machine-qemu*web.scope=/run/guests/web/energy'",
                              text));
    }
    auto& guest = out.guests_.emplace_back();
    guest.unit = text.substr(0, mark);
    guest.file = text.substr(mark + 1);
    const auto before = read_file(guest.file, kLargestFile);
    if (!before && before.error().code == Errc::kNotFound) continue;
    if (!before) return forward_error(before);
    const auto parsed = model::parse_guest_file(*before);
    if (!parsed) {
      return fail(parsed.error().code, fmt::format("--guest {}: {}; name another file",
                                                   guest.file.string(), parsed.error().message));
    }
    for (const auto& [kind, energy] : parsed->energies) guest.energies[kind] = energy;
  }
  return out;
}

Result<void> GuestFiles::write(const analysis::MachineState& state,
                               const analysis::EnergyAccounts& accounts) {
  const auto* const units = accounts.family(analysis::Family::kUnit);
  if (units == nullptr) return {};
  std::optional<Error> error;
  for (auto& guest : guests_) {
    std::map<std::pair<std::string, std::size_t>, Energy> seen;
    for (std::size_t d = 0; d < state.domains.size(); ++d) {
      const auto kind = state.snapshot.domains[d].domain.kind;
      const bool is_shared = kind == model::DomainKind::kCpu || kind == model::DomainKind::kDram;
      if (!is_shared || !state.domains[d].divided || !state.domains[d].counted) continue;
      auto& sum = guest.energies[kind];
      for (const auto& [unit, entity] : units->entities) {
        // Names of units have backslashes, which are no escapes.
        if (fnmatch(guest.unit.c_str(), unit.c_str(), FNM_NOESCAPE) != 0) continue;
        if (!entity.energies[d]) continue;
        const auto now = entity.energies[d]->energy;
        const auto before = guest.seen.find({unit, d});
        // At the first tick the unit has what an earlier service counted, and so has the file.
        const auto base = before != guest.seen.end() ? before->second : is_first_ ? now : Energy{};
        if (now > base) sum += now - base;
        seen[{unit, d}] = now;
      }
    }
    guest.seen = std::move(seen);
    model::GuestFile file{state.snapshot.time, {}};
    for (const auto& [kind, energy] : guest.energies) file.energies.emplace_back(kind, energy);
    auto written = replace_file(guest.file, model::guest_file_text(file));
    if (!written && !error) error = written.error();
  }
  is_first_ = false;
  if (error) return tl::unexpected(*error);
  return {};
}

}  // namespace jouleprof::serve
