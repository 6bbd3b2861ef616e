#include "analysis/work_span.h"

#include <algorithm>

#include "analysis/activity/replay_time.h"

namespace jouleprof::analysis {

std::optional<WorkSpan> work_span(const model::Recording& recording, Timelines& timelines) {
  const auto recorded = recorded_span(recording);
  if (!recorded) return std::nullopt;
  WorkSpan work;
  work.recorded = *recorded;
  work.begin = recording.run.work_begin ? *recording.run.work_begin
                                        : common_begin(timelines, recorded->begin);
  work.end = recording.run.work_end ? *recording.run.work_end
                                    : std::max(common_end(timelines, recorded->end), work.begin);
  work.program_end = program_end(recording, work.end);
  return work;
}

}  // namespace jouleprof::analysis
