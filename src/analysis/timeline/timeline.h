// One timeline of a domain's energy: shape from power samples, magnitude from the energy counter.
//
// E(t), the energy up to t, is a function of whole microjoules with constant power between knots.
//  - Samples over short windows, and the counter's increments between its edges, are joined by
//    fit_energy (power_fit.h).
//  - Coarser samples give power by themselves; each stretch between two anchors of the counter is
//    scaled so that it integrates to the counter's increment.
//  - A counter alone: power is uniform between anchors. Samples alone: their integral.
// Energy of [a, b] is E(b) - E(a): additive to the microjoule, whatever the split.
//
// The 95 % interval. Each end contributes, as standard deviations added in quadrature:
//  - place: tau * swing, where swing is the difference between the highest and the lowest power
//  that
//    the samples show near the end, and tau what they leave open about when power changed: 0.12 of
//    the window for sharp samples (0.03 where a mark() said that power may change just there, 0.07
//    of a sensor that rises slowly), 0.29
//    of window + spacing for coarse ones, 0.29 of the distance between anchors for a counter alone;
//  - anchor: of the nearest edge, its timing uncertainty x swing (off the lattice: x power), and
//  the
//    counter's quantum / sqrt(12). All edges of a lattice are late together, which adds once their
//    timing uncertainty x the difference in power between both ends;
//  - bridge: from that edge to the end, the samples' own error (0.5 % of each sample; of the step
//    between two samples a fifth for the jitter of stamps and half for the time that neither sees;
//    a quarter of the energy in a gap) and 1 % of the energy for a difference in scale.
// A window that no anchor lies in takes the smaller of its own sampling error and its ends'
// bridges. A window shorter than the sensor's window W adds 0.6 x (W - length) x swing;
// where the sensor rises slowly 0.75, and 1.2 if an end is not marked. Without a
// counter the sampling error runs over the whole window, with 0.5 % of the energy, and 3 % of the
// energy in the time that sensors with gaps between windows do not see. repeatability = 1.96 x the
// sum; error = repeatability and gain_error x energy in quadrature.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/counter.h"
#include "analysis/timeline/counter_edges.h"
#include "analysis/timeline/power_shape.h"
#include "analysis/timeline/seen_power.h"
#include "analysis/timeline/timeline_sensors.h"
#include "base/result.h"
#include "model/power_step.h"
#include "model/profile.h"
#include "model/readings.h"

namespace jouleprof::analysis {

// Thread safety: none; asking computes what has come in since. Readings of other sensors are
// ignored.
class EnergyTimeline {
 public:
  explicit EnergyTimeline(TimelineSensors sensors);

  // Appends readings, per sensor in order of time. What has been asked for already can change only
  // in the last minute or so of the data; before that the timeline is settled.
  void append(const model::CounterReading& reading);
  void append(const model::PowerReading& reading);
  void append(const model::Readings& readings);

  // Power may change abruptly at `t`: the edge of a window of work. Sharpens the energy of windows
  // that begin or end there. To be told before the stretch is settled, in any order. Marks nearer
  // to each other than a sample can tell apart (0.8 of its window) change nothing.
  void mark(HostTime t);

  // Forgets everything before `t`; energies before it are then unavailable. Bounds the memory.
  void forget_before(HostTime t);

  // What can be asked for; absent without readings. Beyond its end a window is not resolved yet.
  struct Extent {
    HostTime begin{};
    HostTime end{};
  };
  std::optional<Extent> extent();

  // Errors: invalid_argument when end < begin; unavailable when the window reaches beyond the
  // extent by more than a little, or lies in a gap. O(log n) once the timeline is computed.
  Result<model::Measurement> energy(HostTime begin, HostTime end);

  // The energy up to `t` from an origin of the timeline's own: differences are energies. The origin
  // may move until the first stretch is settled. Absent where energy() would be unavailable.
  std::optional<Energy> up_to(HostTime t);
  // Up to where nothing that comes in changes anything; absent before the first stretch is settled.
  std::optional<HostTime> settled_until();

  // The mean power of each step from `begin` on; nothing for steps outside the extent.
  std::vector<model::PowerStep> curve(HostTime begin, HostTime end, Duration step);

  // The same energy found from one source alone, interpolated at both ends; absent where that
  // source does not reach, or does not exist. The counter alone: only where it was read within
  // 0.15 s of both ends, for between two reads it knows nothing of the course of power.
  std::optional<Energy> counter_only(HostTime begin, HostTime end);
  std::optional<Energy> samples_only(HostTime begin, HostTime end);

  // Highest power over the sensor's own averaging window (between anchors for a counter alone).
  struct Peak {
    Power power;
    Duration window{};
  };
  std::optional<Peak> peak(HostTime begin, HostTime end);

  // Time in the window for which there is no sample, though samples come otherwise.
  Duration gaps(HostTime begin, HostTime end);

  // The shortest window that the sensors resolve.
  Duration resolution();

  // What the sensors said within [begin, end], one by one: the counter's increments between its
  // edges, where those are known, and samples over known windows. In seconds of `base`. Both are as
  // seen through rise(), which is not taken out here.
  std::vector<SeenPower> seen(HostTime begin, HostTime end, TimeBase base);
  // The time constant of the first-order lag through which the sensors see power; 0: none.
  double rise() const;

  const std::vector<Note>& notes();
  const TimelineSensors& sensors() const { return sensors_; }
  std::string sensor_name() const;  // "a + b" when fused
  std::string method() const;       // "fused", "counter", "samples" or "model"
  model::Provenance provenance() const;

 private:
  struct Knot {
    double at = 0;      // seconds
    double joules = 0;  // up to there
  };
  struct Placed {
    Anchor anchor;
    double joules = 0;  // on the timeline's scale
  };

  void note_origin(HostTime t);
  void drop_frozen(std::size_t first_new);
  void refresh();
  double data_end() const;
  void solve(double stop);
  void settle(double limit);
  void begin_segment(std::uint32_t segment);
  void place_anchors(double stop);
  std::vector<Knot> fit(double start, double stop) const;
  std::vector<Knot> scale(double start, double stop) const;
  std::vector<double> fit_knots(double start, double stop) const;
  double scale_of_samples(double start, double stop) const;
  bool uses_fit() const { return shape_ && shape_->is_sharp() && shape_->samples().size() >= 3; }

  double joules_at(double t) const;
  double power_at(double t) const;
  Energy cumulative(HostTime t) const;
  bool is_marked(double t) const;
  bool is_edge(double t) const;
  double swing(double t) const;
  double place_sigma(double t) const;
  struct Bridge {
    double sigma = 0;
    bool anchored = false;
  };
  Bridge bridge(double t) const;
  double sigma(double a, double b) const;

  TimelineSensors sensors_;
  std::optional<TimeBase> time_;
  bool dirty_ = false;

  std::optional<CounterUnwrapper> unwrapper_;
  std::vector<CounterPoint> points_;
  std::size_t unchanged_from_ = 0;     // first of the newest points that hold one equal value
  std::uint32_t frozen_segments_ = 0;  // added to the unwrapper's
  bool frozen_ = false;
  std::vector<Note> notes_;
  std::size_t unwrapper_notes_ = 0;  // of which are in notes_

  std::optional<PowerShape> shape_;
  std::vector<double> marks_;

  std::optional<EdgePhase> phase_;        // at the settled end
  std::optional<EdgePhase> tail_phase_;   // of the last solved stretch
  std::optional<std::uint32_t> segment_;  // whose offset is known
  std::uint32_t next_segment_ = 0;        // to be tied to the timeline, while none is
  double offset_ = 0;                     // timeline minus counter, joules
  std::vector<Placed> anchors_;           // settled, then provisional
  std::size_t settled_anchors_ = 0;
  std::vector<Knot> knots_;  // settled, then provisional
  std::size_t settled_ = 0;
};

}  // namespace jouleprof::analysis
