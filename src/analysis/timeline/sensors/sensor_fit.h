// The response of a power sensor, from its readings of a load that was on and off at known times.
//
// Model: a reading is idle + step x (the busy share of [t - lag - window, t - lag]), t being its
// timestamp. Separable nonlinear least squares: idle and step are linear and eliminated (variable
// projection, Golub and Pereyra 1973); window and lag come from a grid, then a pattern search
// (Hooke and Jeeves 1961). Errors: jackknife over ten blocks of time. Busy spans of random length
// avoid aliasing, as in Yang, Adamek, Armour, "Part-time Power Measurements" (SC'24), with known
// busy times instead of an external meter.
#pragma once

#include <optional>
#include <span>

#include "analysis/timeline/sensors/refresh_fit.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/device/readings.h"

namespace jouleprof::analysis {

using model::BusySpan;

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
