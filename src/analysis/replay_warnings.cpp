#include "analysis/replay_warnings.h"

#include <fmt/format.h>

#include "analysis/activity/replay_time.h"

namespace jouleprof::analysis {

std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end) {
  const ReplayTime replay = replay_time(recording);
  const auto took = [&](HostTime from, HostTime to) {
    std::string all;
    for (std::size_t i = 0; i < recording.domains.size(); ++i) {
      const auto& domain = recording.domains[i];
      if (!timelines[i] || domain.parent || !domain.visible) continue;
      const auto energy = replay.energy_within(*timelines[i], from, to);
      if (!energy) continue;
      all += fmt::format("{}{:.1f} J of {}", all.empty() ? "" : ", ", energy->energy.joules(),
                         domain.device);
    }
    return all;
  };
  std::vector<std::string> out;
  if (const auto all = took(end, work_end); !all.empty()) {
    out.push_back(
        fmt::format("isolated re-runs of layers and kernels (--replay) ran for {:.1f} s after the "
                    "program; their "
                    "{} are in no figure",
                    seconds(replay.within(end, work_end)), all));
  }
  if (const auto all = took(begin, end); !all.empty()) {
    out.push_back(fmt::format(
        "isolated re-runs of layers and kernels (--replay) ran for {:.1f} s of this time; "
        "the figures include their {}",
        seconds(replay.within(begin, end)), all));
  }
  return out;
}

}  // namespace jouleprof::analysis
