#include "report/activity/stacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/activity/phase_name.h"

namespace jouleprof::report {
namespace {

using model::ActivityRow;
using model::kNone;

std::string frame_of(const ActivityRow& row, std::string_view detail) {
  std::string frame = row.name;
  if (!detail.empty() && detail != row.name) frame += fmt::format(" [{}]", detail);
  if (row.energy && !row.resolvable) frame += " (not resolvable)";
  return frame;
}

// Outermost first.
void add_path(const std::vector<ActivityRow>& rows, std::uint32_t row,
              std::vector<std::string>& frames) {
  const std::size_t first = frames.size();
  for (; row < rows.size(); row = rows[row].parent < row ? rows[row].parent : kNone) {
    const std::string_view detail = rows[row].detail;
    frames.push_back(frame_of(rows[row], detail.substr(0, detail.find(' '))));
  }
  std::reverse(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end());
}

}  // namespace

std::vector<EnergyStack> energy_stacks(const model::ActivityProfile& profile) {
  const std::string device =
      profile.domain.name.empty() || profile.domain.name == profile.domain.device
          ? profile.domain.device
          : fmt::format("{} ({})", profile.domain.device, profile.domain.name);
  std::vector<EnergyStack> out;
  for (const auto& stack : profile.stacks) {
    EnergyStack path{{device}, stack.energy, stack.busy};
    if (const auto phase = model::phase_name(stack.phase); !phase.empty()) {
      path.frames.emplace_back(phase);
    }
    add_path(profile.by_layer, stack.layer, path.frames);
    if (stack.kernel < profile.by_kernel.size()) {
      const ActivityRow& kernel = profile.by_kernel[stack.kernel];
      path.frames.push_back(frame_of(kernel, kernel.detail));
    }
    out.push_back(std::move(path));
  }
  const auto add = [&](const char* name, Energy energy) {
    if (energy != Energy{}) out.push_back({{device, name}, energy, {}});
  };
  if (profile.levels.rest && profile.levels.held) {
    add("(rest)", profile.levels.rest->energy);
    add("(held)", profile.levels.held->energy);
  } else {
    add("(idle)", profile.idle);
  }
  add("(idle between launches)", profile.gaps);
  add("(other processes)", profile.others);
  add("(unattributed)", profile.unattributed);
  return out;
}

}  // namespace jouleprof::report
