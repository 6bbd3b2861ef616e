#include "importers/logs/dmon_activity.h"

#include <algorithm>
#include <map>

namespace jouleprof::importers {

DmonActivity find_activity(const std::vector<Look>& looks) {
  struct ClockRange {
    double lowest = 0;
    double highest = 0;
  };
  std::map<std::size_t, ClockRange> clocks;
  DmonActivity activity;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    bool active = false;
    for (const GpuLook& gpu : looks[i]) {
      active = active || gpu.sm.value_or(0) >= kActiveSmRatio;
      if (!gpu.clock) continue;
      auto& range = clocks.try_emplace(gpu.gpu, ClockRange{*gpu.clock, *gpu.clock}).first->second;
      range.lowest = std::min(range.lowest, *gpu.clock);
      range.highest = std::max(range.highest, *gpu.clock);
    }
    if (!active) continue;
    if (!activity.work) activity.work = LookRange{i, i};
    activity.work->last = i;
  }
  const auto idle = [&](const GpuLook& gpu) {
    if (!gpu.sm || !gpu.clock || *gpu.sm != 0) return false;
    const ClockRange& range = clocks.at(gpu.gpu);
    return *gpu.clock == range.lowest && (!activity.work || range.lowest <= range.highest / 2);
  };
  while (activity.idle_looks < looks.size()) {
    const Look& look = looks[activity.idle_looks];
    if (!std::all_of(look.begin(), look.end(), idle)) break;
    ++activity.idle_looks;
  }
  if (activity.work && activity.work->last - activity.work->first >= 2) {
    ++activity.work->first;
    --activity.work->last;
  }
  return activity;
}

}  // namespace jouleprof::importers
