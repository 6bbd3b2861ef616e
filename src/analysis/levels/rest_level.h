// When a GPU was at rest or held by a context, and the levels of its power then.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "model/domain.h"
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

// When a GPU was held: a context raised its clocks, whether or not a kernel ran. Evidence, in this
// order:
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

// A level of power with its reasons.
struct LevelResult {
  std::optional<model::PowerLevel> level;  // absent: unknown, never zero
  std::string reason;                      // why this recording gave none; may be empty
  std::vector<std::string> warnings;
};

struct ObservedLevel {
  Power power;
  Power error;  // half of the 95 % interval, without the calibration error
};

// Inverse-variance weighted mean; its error covers all observations that disagree with it. Absent
// without any.
std::optional<ObservedLevel> join(const std::vector<ObservedLevel>& observed);

// The lowest mean power of the timeline's steps of at least `least`, of those that count where
// `counts` is given. Absent where none lasted so long.
std::optional<Power> lowest_sustained(
    EnergyTimeline& timeline, Duration least,
    const std::function<bool(const model::PowerStep&)>& counts = nullptr);

// The power of a GPU at rest: no process holds a context, clocks are down.
// Learnt from the recording's idle spans and from each interval in which the board was at rest:
//  - no evidence of a context within it, and no process listed on the board; without any evidence,
//    utilisation of at most 5 %;
//  - power is not falling: by its slope and a time constant of 4 s, it has less than 0.5 W or 0.5 %
//    to fall. From an interval in which it falls, the later half is taken instead. The slope is
//    part of the error.
// Intervals are joined without those above the lowest by more than 2 % and 1 W. Where the board
// rested at a higher level before or after the work, the error reaches up to that. A level above
// the lowest power that lasted for a second was not rest, and is not used. Otherwise the level that
// earlier runs observed is used (Domain::known_levels).
LevelResult rest_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state);

// The power of a GPU that a context holds while nothing runs, rest included.
// Learnt from the 0.3 s before each reading of zero utilisation while the board was held and no
// launch was traced, if power was steady then: the median of their powers, with an interval that
// holds 80 % of them. Without such a reading, the level that earlier runs observed is used.
LevelResult held_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state);

}  // namespace jouleprof::analysis
