// When layers were run alone (model::ChunkKind::kReplay): time that is not the program's own.
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

  // What a domain took in that part of [begin, end] which is replay, absent without any; and in the
  // rest of it. Errors: as EnergyTimeline::energy().
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

// Where the program's own work ends: at the last replay's begin, or when the last process had done
// what it did beside that; at `work_end` where something else came after it.
HostTime program_end(const model::Recording& recording, HostTime work_end);

}  // namespace jouleprof::analysis
