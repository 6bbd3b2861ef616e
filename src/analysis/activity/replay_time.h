// The time of isolated re-runs (model::ChunkKind::kReplay), which is not the program's own.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

class ReplayTime {
 public:
  void add(const model::Trace& trace) {
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind == model::ChunkKind::kReplay) spans_.push_back({chunk.begin, chunk.end});
    }
    std::ranges::sort(spans_, {}, &RecordedSpan::begin);
    std::vector<RecordedSpan> joined;
    for (const RecordedSpan& span : spans_) {
      if (!joined.empty() && span.begin <= joined.back().end) {
        joined.back().end = std::max(joined.back().end, span.end);
      } else {
        joined.push_back(span);
      }
    }
    spans_ = std::move(joined);
  }

  const std::vector<RecordedSpan>& spans() const { return spans_; }  // in order, apart
  bool holds(HostTime t) const {
    const auto after = std::ranges::upper_bound(spans_, t, {}, &RecordedSpan::begin);
    return after != spans_.begin() && t < std::prev(after)->end;
  }
  Duration within(HostTime begin, HostTime end) const {
    Duration sum{};
    for (const RecordedSpan& span : clipped(begin, end)) sum += span.end - span.begin;
    return sum;
  }

  // The energy of a domain in the re-runs within [begin, end], absent without any; and in the rest
  // of [begin, end]. Errors: as EnergyTimeline::energy().
  std::optional<model::Measurement> energy_within(EnergyTimeline& timeline, HostTime begin,
                                                  HostTime end) const {
    const auto sum = sum_over(timeline, clipped(begin, end));
    return sum ? std::optional(*sum) : std::nullopt;
  }
  Result<model::Measurement> energy_without(EnergyTimeline& timeline, HostTime begin,
                                            HostTime end) const {
    const auto replays = clipped(begin, end);
    if (replays.empty()) return timeline.energy(begin, end);
    std::vector<RecordedSpan> rest;
    HostTime from = begin;
    for (const RecordedSpan& replay : replays) {
      if (replay.begin > from) rest.push_back({from, replay.begin});
      from = replay.end;
    }
    if (from < end) rest.push_back({from, end});
    return sum_over(timeline, rest);
  }

 private:
  static Result<model::Measurement> sum_over(EnergyTimeline& timeline,
                                             const std::vector<RecordedSpan>& spans) {
    std::optional<model::Measurement> sum;
    for (const RecordedSpan& span : spans) {
      const auto part = timeline.energy(span.begin, span.end);
      if (!part) return part;
      if (!sum) {
        sum = *part;
        continue;
      }
      sum->energy += part->energy;
      sum->repeatability =
          Energy::joules(std::hypot(sum->repeatability.joules(), part->repeatability.joules()));
      sum->error += part->error;  // the calibration error is the same in all of them
    }
    if (!sum)
      return fail(Errc::kUnavailable, "all of this time belongs to isolated re-runs (--replay)");
    return *sum;
  }

  std::vector<RecordedSpan> clipped(HostTime begin, HostTime end) const {
    std::vector<RecordedSpan> out;
    for (const RecordedSpan& span : spans_) {
      const RecordedSpan part{std::max(span.begin, begin), std::min(span.end, end)};
      if (part.begin < part.end) out.push_back(part);
    }
    return out;
  }

  std::vector<RecordedSpan> spans_;
};

// Adds up the re-runs of all processes.
inline ReplayTime replay_time(const model::Recording& recording) {
  ReplayTime all;
  for (const auto& trace : recording.traces) all.add(trace);
  return all;
}

// The end of the program's own work: the begin of the last re-run, or later, the end of the last
// activity outside of re-runs. `work_end` where activity followed the last re-run.
inline HostTime program_end(const model::Recording& recording, HostTime work_end) {
  const ReplayTime all = replay_time(recording);
  if (all.spans().empty()) return work_end;
  const RecordedSpan last = all.spans().back();
  HostTime own = last.begin;
  for (const auto& trace : recording.traces) {
    ReplayTime replay;
    replay.add(trace);
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind == model::ChunkKind::kReplay || replay.holds(chunk.begin)) continue;
      if (chunk.begin >= last.end) return work_end;
      own = std::max(own, chunk.end);
    }
  }
  return std::min(own, work_end);
}

}  // namespace jouleprof::analysis
