#include "importers/logs/dmon_lines.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {

Cells dmon_cells(std::string_view line) {
  line = trim(line);
  if (line.starts_with('#')) line.remove_prefix(1);
  const bool commas = line.find(',') != std::string_view::npos;
  Cells cells;
  for (const auto cell : commas ? split(line, ',') : split_blanks(line)) {
    cells.emplace_back(trim(cell));
  }
  return cells;
}

std::optional<DmonHeader> parse_dmon_header(std::string_view line) {
  line = trim(line);
  const bool hash = line.starts_with('#');
  if (!hash && line.find(',') == std::string_view::npos) return std::nullopt;
  // Before splitting: a capture has a hundred thousand other lines.
  const std::string_view start = trim(line.substr(hash ? 1 : 0));
  constexpr std::string_view kFirst = "gGdDtT";
  if (start.empty() || kFirst.find(start.front()) == kFirst.npos) return std::nullopt;
  DmonHeader header;
  bool has_gpu = false, any = false;
  for (const std::string& cell : dmon_cells(line)) {
    const std::string name = lower_case(split_unit(cell).word);
    header.names.push_back(name);
    if (!has_gpu) {
      if (name != "gpu" && name != "date" && name != "time") return std::nullopt;
      has_gpu = name == "gpu";
      header.has_times = header.has_times || name == "time";
      continue;
    }
    if (name == "pid") header.is_pmon = true;
    if (name == "mig" || name == "gi" || name == "ci") header.has_instances = true;
    any = any || std::any_of(kDmonFields.begin(), kDmonFields.end(), [&](const LogField& field) {
            return field.role == LogRole::kValue && field.name == name;
          });
  }
  // "# gpu capture" in some other text is a title, not a header.
  if (!has_gpu || (!any && !header.is_pmon)) return std::nullopt;
  return header;
}

bool is_dmon_units(const Cells& cells) {
  return !cells.empty() &&
         (cells[0] == "Idx" || cells[0].starts_with("YYYY") || cells[0].starts_with("HH:"));
}

bool is_dmon_value(std::string_view cell) {
  return cell == "-" || parse_number(cell) || parse_time_of_day(cell);
}

bool begins_with_value(const Cells& cells) {
  return !cells.empty() && is_dmon_value(cells.front());
}

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
