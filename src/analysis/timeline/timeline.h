// The timeline of a domain's energy, and the choice of its sensors.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeline/sensors/counter.h"
#include "analysis/timeline/sensors/counter_edges.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "analysis/timeline/sensors/power_shape.h"
#include "base/result.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/profile.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {

// The sensors of one domain's timeline; at least one is present.
struct TimelineSensors {
  std::optional<model::Sensor> counter;
  std::optional<model::Sensor> power;
  // A moving average of power. It has no time without measurement, so it shows what `power` misses
  // where that sees only part of the time.
  std::optional<model::Sensor> average = {};
  // Gauges of the domain.
  std::optional<model::SensorId> limit = {};        // its power limit
  std::optional<model::SensorId> utilisation = {};  // of a GPU
};

// A domain's counter, and the power sensor with the most detail (sample buffer, then instant, then
// average power). A measured counter is never combined with an estimate. `has_readings`: by sensor.
// Absent when no sensor of the domain has readings.
std::optional<TimelineSensors> choose_sensors(const std::vector<model::Sensor>& sensors,
                                              model::DomainId domain,
                                              const std::vector<bool>& has_readings);

// The timeline of a domain's energy: power samples give its shape, the counter its magnitude.
//
// E(t), the energy up to t, is a function of whole microjoules with constant power between knots.
//  - Samples over short windows, and the counter's increments between its updates, are combined by
//    fit_energy() (power_fit.h).
//  - Coarser samples give power directly; between two anchors of the counter they are scaled to its
//    increment.
//  - A counter alone: power is uniform between anchors. Samples alone: their integral.
// The energy of [a, b] is E(b) - E(a): additive to the microjoule, however it is split.
//
// The 95 % interval is 1.96 times the sum in quadrature of these standard deviations:
//  - placement, of each end: tau x swing. Swing is the range of the samples near the end; tau is
//    the uncertainty of the time at which power changed: 0.12 of the window for sharp samples (at a
//    mark() 0.03, or 0.07 with a first-order lag), 0.29 of window + spacing for coarse ones, 0.29
//    of the distance between anchors for a counter alone;
//  - anchor, of the nearest update at each end: its timing uncertainty x swing (off the lattice: x
//    power), and the counter's quantum / sqrt(12). All updates of a lattice are late together,
//    and so are all samples of a driver's buffer: their timing uncertainty x the difference in
//    power between both ends adds once;
//  - bridge, from that update to the end: 0.5 % of each sample; of the step between two samples a
//    fifth for timestamp jitter and half for time outside of windows; a quarter of the energy while
//    samples are missing, from 1 s on half of what the most power that is possible would use; 1 %
//    of the energy for a difference in scale.
// An interval without anchors takes the smaller of its own sampling error and its ends' bridges.
// Outside of the counter's anchors (before the first, after the last, and where the counter was
// lost), samples have the scale that they had against the counter, with the uncertainty of that;
// never more than both sensors' gain errors allow. Lost energy without samples counts half.
// Where samples and counter differ by more than their gain errors, over a second or from one read
// to the next, the interval contains both: the difference is added to it. A smaller difference that
// exceeds noise and the usual closure of both is added to `error` alone.
// Samples that see part of the time can be locked to a load at a fixed rate. What they then miss is
// added: as the moving average of the board shows it; else, for a pattern of samples that recurs,
// as much as the steps between the samples allow, in one direction; else, for samples of one value
// and for those that drift, what the board's utilisation leaves open.
// Of few samples, the time outside of their windows adds what the board may have drawn in it: of
// work, any power up to its limit; else the range of the samples around.
// One shorter than the sensor's window W adds 0.6 x (W - length) x swing (with a first-order lag
// 0.75, and 1.2 unless both ends are marked). Without a counter the sampling error covers the whole
// interval, with 0.5 % of the energy, and 3 % of the energy outside of the samples' windows.
// repeatability is this interval; error adds half of the sensor's gain interval x energy and half
// of its offset interval x time in quadrature, and shift is where their middles lie (ScaleError).
// Readings are multiplied by the sensors' correction first.
// Thread safety: none; queries first process new readings. Readings of other sensors are ignored.
class EnergyTimeline {
 public:
  explicit EnergyTimeline(TimelineSensors sensors);

  // Appends readings, per sensor in order of time. They change the timeline only in the last minute
  // of the data; before that it is settled.
  void append(const model::CounterReading& reading);
  void append(const model::PowerReading& reading);
  void append(const model::GaugeReading& reading);
  void append(const model::ReadFailure& failure);
  void append(const model::Readings& readings);

  // Power may change abruptly at `t`: the edge of a window. Narrows the intervals of windows that
  // begin or end there. To be called before that time is settled, in any order. Marks closer to one
  // another than 0.8 of a sample's window have no effect.
  void mark(HostTime t);
  // The measured work, of which power says nothing before and after; marks both.
  void set_work(HostTime begin, HostTime end);

  // Whether the counter's newest reads show one value for longer than its period explains. What was
  // used since then is not known soon, however often it is read. One without samples may catch up
  // within two seconds, and is waited for until then.
  bool counter_stands_still() const;

  // Drops the data before `t`; energies before it are then unavailable. Bounds the memory.
  void forget_before(HostTime t);

  // The time with known energy; absent without readings. Windows that end later are unavailable
  // yet.
  struct Extent {
    HostTime begin{};
    HostTime end{};
  };
  std::optional<Extent> extent();
  // Whether the power sensor has returned one value for seconds, and is not used since.
  bool has_frozen_power() const { return shape_ && shape_->is_frozen(); }

  // Errors: invalid_argument when end < begin; unavailable when the window exceeds the extent by
  // more than three times resolution() (0.1 s where the sensor's reads fail since then), or samples
  // are missing in most of it. O(log n) once computed.
  Result<model::Measurement> energy(HostTime begin, HostTime end);

  // The energy up to `t` from the timeline's own origin: differences are energies. The origin may
  // move until settled_until() is present. Absent where energy() would be unavailable.
  std::optional<Energy> up_to(HostTime t);
  // The end of the settled timeline, which new readings do not change; absent before the first one.
  std::optional<HostTime> settled_until();

  // The mean power of each step from `begin` on; nothing for steps outside the extent.
  std::vector<model::PowerStep> curve(HostTime begin, HostTime end, Duration step,
                                      model::StepErrors errors = model::StepErrors::kLeftOut);

  // The energy from one sensor alone, interpolated at both ends; absent where that sensor has no
  // data. From the counter only where it was read within 0.15 s of both ends: between two reads,
  // the counter does not show how power changed.
  std::optional<Energy> counter_only(HostTime begin, HostTime end);
  std::optional<Energy> samples_only(HostTime begin, HostTime end);

  // Highest power over the sensor's own averaging window (between anchors for a counter alone).
  // Absent where samples are missing for so long that power may have been higher.
  struct Peak {
    Power power;
    Duration window{};
  };
  std::optional<Peak> peak(HostTime begin, HostTime end);

  // Where instants lie in the cycle of the sensor that shows power's course (without samples, of
  // the counter's updates); absent where that is unknown of one of both.
  std::optional<model::EndTurns> turns(HostTime begin, HostTime end);

  // Time in the window in which samples are missing.
  Duration missing_samples(HostTime begin, HostTime end);

  // What of the repeatability of energy() stretches have alike: the sensors show every change of
  // power late, or blurred, in the same way. All of the ends' error; for a driver's buffer without
  // a first-order lag, what its lag is unknown by.
  Energy alike(HostTime begin, HostTime end);

  // The length of the shortest window that the sensors resolve.
  Duration resolution();

  // The observations within [begin, end], in seconds of `base`: the counter's increments between
  // known updates, and samples over known windows. Not corrected for the time constant.
  std::vector<ObservedPower> observations(HostTime begin, HostTime end, TimeBase base);
  // The time constant of the sensors' first-order lag, in seconds; 0: none.
  double time_constant() const;

  // The energy in [begin, end] by which counter and samples differ where they disagree: where they
  // differ by more than the gain errors of both. Zero where they agree.
  Energy disagreement(HostTime begin, HostTime end);

  // What samples that see part of the time may miss in [begin, end] of a load at a fixed rate.
  struct Hidden {
    Energy energy;
    Duration period{};  // after which the samples recur; zero: unknown
  };
  Hidden hidden(HostTime begin, HostTime end);

  // Whether the counter's unit was verified against power. A counter in another known unit is
  // rescaled from its first reading on, and one that fits no unit is no longer used; both add a
  // note.
  const UnitVerdict& unit();

  // Once all readings are in.
  const std::vector<Note>& notes();
  const TimelineSensors& sensors() const { return sensors_; }
  // The error of scale of the sensor that gives the amount of energy.
  const model::ScaleError& sensor_scale() const;
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
    // From the first anchor: joules by which counter and samples differ where they disagree.
    double doubt = 0;
  };

  // The samples' factor to agree with the counter, and its standard deviation.
  struct Scale {
    double ratio = 1;
    double sigma = 0;
  };
  // What the counter covers of an interval of time, and what it does not.
  struct Coverage {
    double lost = 0;  // joules between segments, before the first and after the last anchor
    double lost_variance = 0;    // between segments
    double unknown_seconds = 0;  // without counter and samples
  };

  void note_origin(HostTime t);
  double hidden_joules(double a, double b) const;
  UnseenEnergy unseen_energy(double a, double b) const;
  double hidden_in_samples(double a, double b, const Coverage& covered) const;
  std::optional<double> off_by_average(double a, double b, double& noise) const;
  std::optional<double> partly_busy(double a, double b) const;
  double hidden_by_utilisation(double a, double b) const;
  double hidden_by_beat(double a, double b) const;
  double unseen(double a, double b) const;
  bool is_polled() const;
  bool is_model() const;
  bool sees_all() const;
  bool is_work(double a, double b) const;
  bool is_short_work(double a, double b) const;
  double hidden_step(double a, double b) const;
  double contradiction(double a, double b) const;
  double unplaced(double a, double b) const;
  void learn_period(const model::CounterReading& reading);
  void split_frozen(std::size_t first);
  void drop_frozen(std::size_t first_new);
  std::optional<double> watts_until(std::size_t point) const;
  bool caught_up_at_once(std::size_t first, std::size_t last) const;
  bool is_too_still(std::size_t first, std::size_t last) const;
  bool may_catch_up() const;
  std::size_t known_points() const;
  bool is_frozen(const CounterPoint& first, const CounterPoint& last) const;
  bool catches_up(const CounterPoint& first, const CounterPoint& last) const;
  double next_data(double t) const;
  Coverage coverage(double a, double b) const;
  // The counter's increment between two anchors, and the samples' integral.
  struct Comparison {
    double counted = 0;
    double sampled = 0;
    double variance = 0;  // of their difference
    bool disagree = false;
  };
  std::optional<Comparison> compare(const Placed& from, const Placed& to) const;
  std::size_t next_cell(std::size_t first) const;
  void find_doubts();
  double doubt_at(double t) const;
  double gain_error() const;  // of counter and samples together
  void refresh();
  void take(const model::CounterReading& reading);
  void check_unit();
  void forget_counter();
  double data_end() const;
  void solve(double stop);
  void settle(double limit);
  void begin_segment(std::uint32_t segment);
  void place_anchors(double stop);
  std::vector<Knot> fit(double start, double stop) const;
  std::vector<Knot> scale(double start, double stop) const;
  std::vector<double> fit_knots(double start, double stop) const;
  Scale scale_of_samples(double stop) const;
  bool has_samples() const { return shape_ && !shape_->samples().empty(); }
  bool uses_fit() const { return shape_ && shape_->is_sharp() && shape_->samples().size() >= 3; }

  // The first anchor after t, and the knot that ends the cell of t.
  std::vector<Placed>::const_iterator next_anchor(double t) const;
  std::vector<Knot>::const_iterator next_knot(double t) const;
  double joules_at(double t) const;
  double power_at(double t) const;
  Energy cumulative(HostTime t) const;
  double reach();
  double last_at();
  bool is_marked(double t) const;
  bool is_edge(double t) const;
  double swing(double t) const;
  double place_sigma(double t) const;
  std::string still_counter() const;
  std::string without_curve() const;
  bool is_all_zero() const;
  struct Bridge {
    double sigma = 0;
    bool anchored = false;
  };
  Bridge bridge(double t) const;
  double unseen_ratio(double a, double b) const;
  double ends_sigma(double a, double b) const;
  double late_sigma(double a, double b) const;
  double sigma(double a, double b) const;

  void add_note(Note note);

  TimelineSensors sensors_;
  std::optional<TimeBase> time_;
  bool dirty_ = false;

  UnitCheck unit_;
  double factor_ = 1;  // of the counter's unit
  std::optional<CounterUnwrapper> unwrapper_;
  std::vector<CounterPoint> points_;
  std::size_t unchanged_from_ = 0;     // first of the newest points that hold one equal value
  std::uint32_t frozen_segments_ = 0;  // added to the unwrapper's
  bool frozen_ = false;
  std::vector<Note> notes_;  // one of each text
  CounterPeriod counter_period_;
  struct Reads {  // all of the counter's
    std::size_t count = 0;
    HostTime begin{};
    HostTime newest{};
    HostTime moved{};  // the first of the present value
    Energy value;
    // Two reads or more that do not differ: nothing is known of the energy.
    bool have_one_value() const { return count > 1 && moved == begin; }
  } reads_;

  HostTime failed_counter_{};  // the latest failed reads; the epoch: none
  HostTime failed_power_{};

  std::optional<PowerShape> shape_;
  std::optional<PowerShape> average_;
  double limit_watts_ = 0;                               // the highest so far; 0: unknown
  std::vector<std::pair<double, double>> utilisations_;  // by seconds
  std::vector<double> marks_;
  std::pair<double, double> work_{};  // seconds; empty: unknown
  Scale scale_;                       // at the end of the data

  std::optional<EdgePhase> phase_;        // at the settled end
  std::optional<EdgePhase> tail_phase_;   // of the last solved interval
  std::optional<std::uint32_t> segment_;  // whose offset is known
  std::uint32_t next_segment_ = 0;        // to be tied to the timeline, while none is
  double offset_ = 0;                     // timeline minus counter, joules
  std::vector<Placed> anchors_;           // settled, then provisional
  std::size_t settled_anchors_ = 0;
  std::vector<Knot> knots_;  // settled, then provisional
  std::size_t settled_ = 0;
};

}  // namespace jouleprof::analysis
