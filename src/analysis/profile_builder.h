// The profile of one part of a recording, and the span of its work.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "analysis/slices/process_slicer.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/windows/windows.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Begin and end of a recording's work.
struct WorkSpan {
  RecordedSpan recorded;  // the first and last moment of the recording
  HostTime begin{};
  HostTime end{};
  HostTime program_end{};  // `end` without the isolated re-runs after the program (--replay)

  double seconds_of(HostTime t) const { return seconds(t - begin); }
};

// Without a command, the time over which every domain is known. Absent when no moment is known.
std::optional<WorkSpan> work_span(const model::Recording& recording, Timelines& timelines);

struct ProfileInput {
  const model::Recording& recording;
  Timelines& timelines;  // with their marks
  WorkSpan work;         // all of it; the profile is of [begin, end]
  HostTime begin{};
  HostTime end{};
  std::vector<BoardLevels> levels;                   // by domain, in the recording's order
  std::vector<CommonEnergy> common;                  // of windows, by domain
  std::span<const model::ActivityProfile> activity;  // of the same part
  const model::CollectiveProfile* collectives = nullptr;
  ProcessSlicer* slicer = nullptr;  // gets the energies of processes by time
};

model::Profile build_profile(const ProfileInput& input);

}  // namespace jouleprof::analysis
