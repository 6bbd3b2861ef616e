#include "importers/dmon/dmon_activity.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace jouleprof::importers {
namespace {

struct ClockRange {
  double lowest = 0;
  double highest = 0;
};

}  // namespace

DmonActivity find_activity(std::span<const DmonRow> rows, std::span<const std::size_t> ticks) {
  std::map<std::int64_t, ClockRange> clocks;
  for (const DmonRow& row : rows) {
    if (const auto clock = row[DmonField::kSmClock]) {
      auto& range = clocks.try_emplace(row.gpu, ClockRange{*clock, *clock}).first->second;
      range.lowest = std::min(range.lowest, *clock);
      range.highest = std::max(range.highest, *clock);
    }
  }
  const auto rows_of = [&](std::size_t tick) {
    const std::size_t end = tick + 1 < ticks.size() ? ticks[tick + 1] : rows.size();
    return rows.subspan(ticks[tick], end - ticks[tick]);
  };

  DmonActivity activity;
  for (std::size_t tick = 0; tick < ticks.size(); ++tick) {
    const auto group = rows_of(tick);
    const bool active = std::any_of(group.begin(), group.end(), [](const DmonRow& row) {
      return row[DmonField::kSm].value_or(0) >= kActiveSmPercent;
    });
    if (!active) continue;
    if (!activity.work) activity.work = TickRange{tick, tick};
    activity.work->last = tick;
  }

  const auto idle = [&](const DmonRow& row) {
    const auto sm = row[DmonField::kSm], clock = row[DmonField::kSmClock];
    if (!sm || !clock || *sm != 0) return false;
    const ClockRange& range = clocks.at(row.gpu);
    return *clock == range.lowest && (!activity.work || range.lowest <= range.highest / 2);
  };
  while (activity.idle_ticks < ticks.size()) {
    const auto group = rows_of(activity.idle_ticks);
    if (!std::all_of(group.begin(), group.end(), idle)) break;
    ++activity.idle_ticks;
  }

  if (activity.work && activity.work->last - activity.work->first >= 2) {
    ++activity.work->first;
    --activity.work->last;
  }
  return activity;
}

}  // namespace jouleprof::importers
