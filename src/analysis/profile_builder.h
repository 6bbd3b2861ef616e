// The profile of one part of a recording.
#pragma once

#include <span>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "analysis/slices/process_slicer.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/windows/windows.h"
#include "analysis/work_span.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective_profile.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

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
