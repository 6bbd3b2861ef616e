// When a GPU was held: a context raised its clocks, whether or not a kernel ran.
#pragma once

#include <optional>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Each moment at which the state of a board is known.
struct StateEvidence {
  HostTime at{};
  bool held = false;
};

// A change of the state between two moments with evidence.
struct StateChange {
  HostTime earliest{};
  HostTime latest{};
  bool held = false;  // from then on
};

// Evidence, in this order:
//  - a traced launch ran: held;
//  - the SM clock: above half of the highest of the recording (at least of 1.2 GHz), or utilisation
//    above zero: held; else at rest. A context that leaves the clocks down costs no power;
//  - where the clock is unknown: processes listed on the board: held; idle spans in which none was
//    listed and utilisation was at most 5 %: at rest.
// Between two equal states the state is the same; before the first and after the last as there.
class BoardState {
 public:
  BoardState(const model::Recording& recording, const model::Domain& domain);

  bool is_known() const { return !evidence_.empty(); }
  const std::vector<StateEvidence>& evidence() const { return evidence_; }
  std::vector<StateChange> changes() const;
  // Whether the state at `t` is `held`, judged by the evidence before and after it.
  bool is_between(bool held, HostTime t) const;
  // From the first to the last evidence of each interval without a sign of a context.
  std::vector<RecordedSpan> rests() const;
  // Whether a traced launch may have run in [begin, end].
  bool was_traced(HostTime begin, HostTime end) const;

 private:
  void add_traces(const model::Recording& recording, const model::Domain& domain);
  void add_idle_spans(const model::Recording& recording,
                      const std::vector<model::GaugeReading>& utilisations);

  std::vector<StateEvidence> evidence_;  // in order
  std::vector<RecordedSpan> traced_;     // of launches, disjoint and in order
};

}  // namespace jouleprof::analysis
