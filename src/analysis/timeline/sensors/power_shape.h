// Power over time, from the samples of one power sensor.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/timeline/sensors/observed_sensor.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// One sample: the mean power over [begin, end], in seconds of a TimeBase. A sensor whose window is
// not known gives points: begin == end.
struct PowerSample {
  double begin = 0;
  double end = 0;
  double watts = 0;
  // In plain integrals the sample represents the time up to `until`, half way to the next sample.
  double until = 0;
  // Plain integral up to the centre, and variance (J^2) of the energy missed between samples.
  double joules = 0;
  double variance = 0;
  // Joules that are missed between samples where each step misses as much as it can, and all steps
  // in one direction: those of a load that is locked to the sensor.
  double locked = 0;
  double steps = 0;            // the sum of power's steps from sample to sample, in watts,
  double changes = 0;          // and how many of them are none to the same value
  double missing = 0;          // seconds between windows where samples are missing
  bool after_missing = false;  // samples are missing before this one

  double centre() const { return 0.5 * (begin + end); }
};

// Collects one power sensor's readings as samples: means over `window` that ended `lag` before the
// timestamp. A first-order lag is approximated by the nearest plain mean: equally late on average,
// 1.6 time constants longer.
//
// Late stamps of a driver's buffer are mended (mend_late_stamps).
//
// A polled value that repeats is a new sample only after the sensor's refresh period; polling
// faster than the sensor changes nothing. Without a known refresh, every reading is a new sample.
//
// A frozen sensor has no samples from the time on at which its value stayed: 0 W for seconds, or
// one value for seconds after values that hardly ever repeated. Left out are values above what the
// board can draw, 0 W of a sensor that has shown more than 5 W without pause, and two values of one
// timestamp.
class PowerShape {
 public:
  PowerShape(const model::Sensor& sensor, TimeBase time) : sensor_(sensor), time_(time) {}

  void push(const model::PowerReading& reading);
  void forget_before(double t);
  // The board's power limit: values that it does not explain are left out from now on.
  void set_limit(double watts) { limit_ = watts; }

  const std::vector<PowerSample>& samples() const { return samples_; }
  bool is_frozen() const { return frozen_; }
  // The end of the last reading's window; absent without any reading.
  std::optional<double> end() const { return end_; }

  // Joules in [from, to], each sample representing the time nearest to it. Power is constant before
  // the first and after the last sample. Needs a sample.
  double integral(double from, double to) const;
  // Joules up to `t` from an origin of its own: integral() is a difference of these.
  double plain_energy(double t) const;
  // The samples whose windows overlap [from, to], and one on either side of them.
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;  // one past
  };
  Range around(double from, double to) const;
  // Whether each sample's stamp is still late for its turn, where those of a buffer are regular;
  // empty: none is. Such a sample is of another moment than it says.
  std::vector<bool> doubtful_stamps() const;
  // The difference between the highest and the lowest power near `t`, within the samples' windows.
  double swing(double t) const;
  // The part of the time between two samples that has passed at `t`; absent where samples are
  // missing.
  std::optional<double> turn(double t) const;
  // The variance (J^2) of the energy missed by the sampling between two times.
  double missed_variance(double from, double to) const;
  // Joules by which the integral over an interval is wrong at most where a load's period is locked
  // to the sensor's: of a recurring pattern of samples all of `locked`, of other loads nothing.
  double locked_joules(double from, double to) const;
  // The time after which the samples of an interval recur; 0: they do not.
  double recurrence(double from, double to) const;
  // Highest minus lowest of the samples whose windows lie in an interval, and their mean step from
  // one to the next.
  struct Variation {
    double range = 0;
    double step = 0;
    double change = 0;  // the mean of the steps that are none to the same value
  };
  Variation variation(double from, double to) const;
  // The lowest of all samples so far that is above zero, and the highest, in watts.
  double lowest_watts() const { return least_shown_; }
  double highest_watts() const { return highest_; }
  // What may be drawn where no sample shows it. A model's own values bound it.
  double most_watts() const;
  // What was left out, and since when: at most one in ten seconds for each reason.
  struct Trouble {
    double at = 0;
    const char* text = "";
  };
  std::vector<Trouble> take_troubles() { return std::exchange(troubles_, {}); }
  // The newest, taken or not; nullptr: there was none.
  const char* last_trouble() const { return last_trouble_; }
  std::size_t left_out() const { return left_out_; }  // readings
  // Seconds in [from, to] with missing samples.
  double missing_seconds(double from, double to) const;

  double window() const { return mean_window() + kLagWindow * time_constant(); }
  // The sensor's own response, without that approximation.
  double time_constant() const { return sensor_.traits.rise ? seconds(*sensor_.traits.rise) : 0.0; }
  double mean_window() const {
    return sensor_.traits.window ? seconds(*sensor_.traits.window) : 0.0;
  }
  double mean_end(const PowerSample& s) const {
    return s.end + (1 - kLagWindow / 2) * time_constant();
  }
  // Seconds within which a polled value was renewed, at an unknown moment; 0 of a driver's buffer.
  double unplaced() const { return unplaced_; }
  double spacing() const { return usual_; }  // recent time between samples; 0 with only one
  // The share of time within samples' windows: 1 unless windows are shorter than the spacing. 0 of
  // a window that is not known: it may be of nearly no time.
  double seen_fraction() const;
  // Whether samples are short, frequent means over known windows, fit for deconvolution.
  bool is_sharp() const;
  const model::Sensor& sensor() const { return sensor_; }

 private:
  static constexpr double kLagWindow = 1.6;

  void add(double begin, double end, double watts);
  void add_block();
  void leave_out(double at, const char* why);
  void note(double at, const char* why);
  void drop_contradicted(double at);
  void mend_late_stamps(double next_end);
  struct Recurrence {
    double period = 0;
    double certainty = 0;
  };
  Recurrence recurrence_of(double from, double to) const;
  double range_of(std::size_t first, std::size_t last) const;
  bool drop_frozen(double watts);
  std::vector<PowerSample>::const_iterator next_sample(double t) const;

  model::Sensor sensor_;
  TimeBase time_;
  std::vector<PowerSample> samples_;
  // The lowest and the highest power of each kBlock samples.
  std::vector<std::pair<double, double>> blocks_;
  std::optional<double> end_;
  std::optional<double> last_read_;
  double last_watts_ = 0;
  double usual_ = 0;
  double highest_ = 0;                                       // watts
  double lowest_ = std::numeric_limits<double>::infinity();  // before the present repeats
  // Samples that differ from the one before, that repeat it, and repeat it up to now.
  std::size_t changes_ = 0;
  std::size_t repeats_ = 0;
  std::size_t repeated_ = 0;
  double repeated_since_ = 0;
  bool frozen_ = false;
  double unplaced_ = 0;
  double limit_ = 0;                                              // watts; 0: unknown
  double least_shown_ = std::numeric_limits<double>::infinity();  // above 0 W
  double last_value_ = 0;                                         // watts, of the last reading
  std::vector<Trouble> troubles_;                                 // not taken yet
  std::vector<Trouble> newest_;                                   // of each reason for leaving out
  const char* last_trouble_ = nullptr;
  std::size_t left_out_ = 0;
};

}  // namespace jouleprof::analysis
