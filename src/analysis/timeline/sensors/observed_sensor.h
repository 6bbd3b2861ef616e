// A power sensor as its readings show it.
#pragma once

#include <span>

#include "model/device/readings.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// The sensor, with a longer refresh period where its readings show that new values come clearly
// less often than its traits say: by more than half. The traits come from a table of boards, and a
// driver or firmware may differ. `readings`: of this sensor, in order of time. Only polled sensors
// change, with at least 20 new values and reads three times as frequent as these.
model::Sensor as_observed(model::Sensor sensor, std::span<const model::PowerReading> readings);

}  // namespace jouleprof::analysis
