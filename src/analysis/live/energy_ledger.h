// The energy of one domain, reported while it is still being measured.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {

// An EnergyTimeline may still move by a little where it was just asked. A ledger remembers the
// energy up to each instant that it reported, and never changes it: windows that share an edge fit
// together to the microjoule, parts never exceed the whole, and asking again gives the same answer.
// An energy up to an instant between two reported ones is kept between theirs.
//
// Memory is bounded: full detail for `history`, the 100,000 latest reported instants, and before
// that the energy at 20,000 points: every second, and of a program that runs for more than some
// hours every 2, 4, 8 ... seconds, the older the coarser. A window that begins there has an
// interval that is wider by how far the energy left the straight line between its two points.
//
// Thread safety: none.
class EnergyLedger {
 public:
  // `most_coarse`: points of what is before the history.
  EnergyLedger(TimelineSensors sensors, Duration history, std::size_t most_coarse = 20'000);

  void append(const model::Readings& readings);
  void mark(HostTime t) { timeline_.mark(t); }

  // Whether the sensors have reported everything up to `t`: a counter's first update after it
  // included, where updates come quickly.
  bool knows(HostTime t);
  // Whether the newest reading of each sensor is late enough for that: much cheaper, and necessary.
  bool may_know(HostTime t) const { return reached() >= t; }
  // How long after `t` that can be the case at the earliest.
  Duration delay() const;
  // When the newest reading was taken; the epoch before the first.
  HostTime newest() const { return newest_; }
  // From the first reading to the newest instant for which knows() is true.
  std::optional<EnergyTimeline::Extent> known();

  // Errors: as EnergyTimeline::energy's.
  Result<model::Measurement> energy(HostTime begin, HostTime end);
  // Like energy(), for what lies before EnergyTimeline::settled_until() and so stays as it is
  // without being remembered.
  Result<model::Measurement> settled_energy(HostTime begin, HostTime end);

  // Where the counter stood at `t`, which the sensors have reported: the newest reading, and what
  // was used between it and `t`. Absent without a counter.
  std::optional<Energy> counter_at(HostTime t);

  // How many instants energy() is bound by, and how many points there are of what is long ago.
  std::size_t remembered() const { return reported_.size(); }
  std::size_t coarse_points() const { return coarse_.size(); }

  // Forgets the details of what is older than the history. To be called now and then.
  void tidy(HostTime now);
  // Forgets what it remembers of before `t`, for a service that runs for months: energies that
  // begin before then are unavailable.
  void forget_before(HostTime t);

  EnergyTimeline& timeline() { return timeline_; }

 private:
  struct Point {
    HostTime at{};
    Energy energy;
    Energy bend;  // how far from the straight line it went since the point before
  };

  enum class Reported { kRemembered, kPassing };

  HostTime reached() const;  // by the readings of all sensors

  std::optional<Energy> value(HostTime t, Reported reported);
  Result<model::Measurement> measure(HostTime begin, HostTime end, Reported reported);
  Energy between_reported(HostTime t, Energy energy) const;
  void follow_origin();
  Energy bend_between(const Point& from, const Point& to);
  void thin_coarse();
  Result<model::Measurement> energy_since_long_ago(HostTime begin, HostTime end, Reported reported);

  EnergyTimeline timeline_;
  Duration history_;
  std::size_t most_coarse_;
  HostTime newest_{};
  HostTime newest_counter_{};
  std::optional<model::CounterReading> last_counter_;

  std::optional<HostTime> origin_;  // where the reported energies count from
  Energy shift_;                    // from the timeline's scale to ours
  bool origin_settled_ = false;
  std::map<HostTime, Energy> reported_;
  std::vector<Point> coarse_;  // before the timeline's begin
};

}  // namespace jouleprof::analysis
