// How often a sensor is renewed.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"
#include "model/readings.h"

namespace jouleprof::analysis {

// A finding and half of its 95 % interval, of what scatters: an error of the model is not in it.
struct FittedDuration {
  Duration value{};
  Duration error{};
};

// The usual distance of renewals, from when they came (seconds, in order, at least two). A renewal
// that is late may make all that follow late, so the mean distance says less.
FittedDuration usual_gap(const std::vector<double>& times);

// The period of an energy counter's updates from reads at least three times as dense. Errors:
// unavailable with fewer than 10 updates, when most reads brought a new value, or when updates do
// not come at a fixed period.
Result<FittedDuration> fit_counter_refresh(std::span<const model::CounterReading> reads);

}  // namespace jouleprof::analysis
