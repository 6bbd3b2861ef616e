// The course of power over time, from the samples of one power sensor.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/timeline/time_base.h"
#include "model/readings.h"
#include "model/sensor.h"

namespace jouleprof::analysis {

// One sample: the mean power over [begin, end], in seconds of a TimeBase. A sensor whose window is
// not known gives points: begin == end.
struct PowerSample {
  double begin = 0;
  double end = 0;
  double watts = 0;
  // Standing for the stretch up to `until` (half way to the next sample) in plain integrals.
  double until = 0;
  // Plain integral, and variance (J^2) of what the sampling may have missed, up to the centre.
  double joules = 0;
  double variance = 0;
  bool after_gap = false;  // no sample for much longer than usual before this one

  double centre() const { return 0.5 * (begin + end); }
};

// Collects one power sensor's readings as samples placed where they belong: the mean over `window`
// that ended `lag` before the stamp. A sensor that also follows the load with a first-order lag is
// taken for the plain mean that is nearest to it: as late on average, 1.6 time constants longer.
//
// A polled value that repeats is a new sample only when the sensor has had the time to renew it;
// so polling faster than the sensor changes nothing. A sensor without a known refresh renews with
// every reading.
class PowerShape {
 public:
  PowerShape(const model::Sensor& sensor, TimeBase time) : sensor_(sensor), time_(time) {}

  void push(const model::PowerReading& reading);
  void forget_before(double t);

  const std::vector<PowerSample>& samples() const { return samples_; }
  // Up to where the sensor has told of; absent without any reading.
  std::optional<double> end() const { return end_; }

  // Joules in [from, to] with each sample standing for the time nearest to it; before the first and
  // after the last sample their power goes on. Needs a sample.
  double integral(double from, double to) const;
  // The samples that speak of any time in [from, to], and one on either side of them.
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;  // one past
  };
  Range around(double from, double to) const;
  // The difference between the highest and the lowest power near `t`, within what samples blur.
  double swing(double t) const;
  // The variance (J^2) of what the sampling may have missed between two times.
  double missed_variance(double from, double to) const;
  // Seconds in [from, to] in which no sample came for much longer than usual.
  double gap_seconds(double from, double to) const;

  double window() const { return mean_window() + kRiseWindow * rise(); }
  // The sensor's own response, before that simplification, counted from a sample's end.
  double rise() const { return sensor_.traits.rise ? seconds(*sensor_.traits.rise) : 0.0; }
  double mean_window() const {
    return sensor_.traits.window ? seconds(*sensor_.traits.window) : 0.0;
  }
  double mean_end(const PowerSample& s) const { return s.end + (1 - kRiseWindow / 2) * rise(); }
  double spacing() const { return usual_; }  // between samples, lately; 0 when there is only one
  // Of the time, how much the samples see: 1 unless windows are known and shorter than the spacing.
  double seen_fraction() const;
  // Samples are short, dense means over known windows, fit for deconvolution.
  bool is_sharp() const;
  const model::Sensor& sensor() const { return sensor_; }

 private:
  static constexpr double kRiseWindow = 1.6;

  void add(double begin, double end, double watts);
  double plain_energy(double t) const;

  model::Sensor sensor_;
  TimeBase time_;
  std::vector<PowerSample> samples_;
  std::optional<double> end_;
  std::optional<double> last_read_;
  double last_watts_ = 0;
  double usual_ = 0;
};

}  // namespace jouleprof::analysis
