// The time of isolated re-runs (model::ChunkKind::kReplay), which is not the program's own.
#pragma once

#include <optional>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

class ReplayTime {
 public:
  void add(const model::Trace& trace);

  const std::vector<RecordedSpan>& spans() const { return spans_; }  // in order, apart
  bool holds(HostTime t) const;
  Duration within(HostTime begin, HostTime end) const;

  // The energy of a domain in the re-runs within [begin, end], absent without any; and in the rest
  // of [begin, end]. Errors: as EnergyTimeline::energy().
  std::optional<model::Measurement> energy_within(EnergyTimeline& timeline, HostTime begin,
                                                  HostTime end) const;
  Result<model::Measurement> energy_without(EnergyTimeline& timeline, HostTime begin,
                                            HostTime end) const;

 private:
  std::vector<RecordedSpan> clipped(HostTime begin, HostTime end) const;

  std::vector<RecordedSpan> spans_;
};

// Of all processes together.
ReplayTime replay_time(const model::Recording& recording);

// The end of the program's own work: the begin of the last re-run, or later, the end of the last
// activity outside of re-runs. `work_end` where activity followed the last re-run.
HostTime program_end(const model::Recording& recording, HostTime work_end);

}  // namespace jouleprof::analysis
