// The traits of a sensor from its readings: how often it is renewed, and how a power sensor
// responds.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// An estimate and half of its 95 % interval from the scatter of the data; model errors are
// excluded.
struct FittedDuration {
  Duration value{};
  Duration error{};

  static FittedDuration of(double value, double error) {
    return {duration_of(value), duration_of(error)};
  }
};

// The median interval between times (seconds, in order, at least two), for refresh periods. Late
// updates bias the mean.
FittedDuration median_interval(const std::vector<double>& times);

// The period of an energy counter's updates, by linear regression. Reads must be at least three
// times as frequent. Errors: unavailable with fewer than 10 updates, when most reads returned a new
// value, or without a fixed period.
Result<FittedDuration> fit_counter_refresh(std::span<const model::CounterReading> reads);

// --- The response of a power sensor to a load that was on and off at known times ---

using model::BusySpan;

// Model: a reading is idle + step x (the busy share of [t - lag - window, t - lag]), t being its
// timestamp. Separable nonlinear least squares: idle and step are linear and eliminated (variable
// projection, Golub and Pereyra 1973); window and lag come from a grid, then a pattern search
// (Hooke and Jeeves 1961). Errors: jackknife over ten blocks of time. Busy spans of random length
// avoid aliasing, as in Yang, Adamek, Armour, "Part-time Power Measurements" (SC'24), with known
// busy times instead of an external meter.
struct SensorFit {
  FittedDuration refresh;  // between two new values
  FittedDuration window;
  FittedDuration lag;  // never negative
  Power idle;          // without the load
  Power step;          // what the load adds
  double r_squared = 0;
  // Present where a first-order lag before the averaging explains the readings much better: its
  // time constant, and the window and lag that go with it. Window and lag above are without it.
  struct FirstOrder {
    Duration time_constant{};
    Duration window{};
    Duration lag{};
  };
  std::optional<FirstOrder> first_order;
};

enum class Stamps {
  kOfSensor,  // each reading is new; the sensor sets its timestamp
  kOfPoll,    // polled faster than renewed: a change of the value is a new reading
};

// `busy`: in order, disjoint, with the device idle before the first and after the last for at least
// a window. Finds windows up to 2.5 s and lags up to 0.3 s. Errors: invalid_argument for spans out
// of order or fewer than 8; unavailable with fewer than 50 new values, a step below 20 W, or where
// the model explains less than 80 % of the variance.
Result<SensorFit> fit_power_sensor(std::span<const BusySpan> busy,
                                   std::span<const model::PowerReading> readings, Stamps stamps);

}  // namespace jouleprof::analysis
