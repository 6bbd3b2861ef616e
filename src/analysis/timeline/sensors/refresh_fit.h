// The refresh period of a sensor.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/device/readings.h"

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

}  // namespace jouleprof::analysis
