// Fits the response of a power sensor to a load that was on and off at known times.
//
// Model: a reading is idle + step x (the part of [t - lag - window, t - lag] that was busy), t
// being its stamp. Idle and step are linear and profiled out; window and lag minimise the squares
// of what is left, first on a grid, then by local search. Spans and pauses of random length prevent
// aliasing with the sensor's period: the method of Yang, Adamek, Armour, "Part-time Power
// Measurements" (SC'24), with known busy times in place of an external meter.
#pragma once

#include <optional>
#include <span>

#include "analysis/timeline/refresh_fit.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/readings.h"

namespace jouleprof::analysis {

using model::BusySpan;

struct SensorFit {
  FittedDuration refresh;  // between two new values
  FittedDuration window;
  FittedDuration lag;  // never negative
  Power idle;          // without the load
  Power step;          // what the load adds
  double r_squared = 0;
  // Where a first-order lag before the averaging explains the readings much better: its time
  // constant, and the window and lag that go with it. Board or sensor may cause it; window and lag
  // above remain those of the plain mean.
  struct Risen {
    Duration rise{};
    Duration window{};
    Duration lag{};
  };
  std::optional<Risen> risen;
};

enum class Stamps {
  kOfSensor,  // each reading is a new one, stamped by the sensor
  kOfPoll,    // read much more often than renewed: a changed value is a new reading
};

// `busy`: in order, not overlapping, with the device idle before the first and after the last for
// as long as readings look back. Windows up to 2.5 s and lags up to 0.3 s are found. Errors:
// invalid_argument for spans out of order or fewer than 8; unavailable with fewer than 50 new
// values, a step below 20 W, or where the model explains less than 80 % of the variance.
Result<SensorFit> fit_power_sensor(std::span<const BusySpan> busy,
                                   std::span<const model::PowerReading> readings, Stamps stamps);

}  // namespace jouleprof::analysis
