// The choice of a domain's sensors for its timeline.
#pragma once

#include <optional>
#include <vector>

#include "model/device/sensor.h"

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

}  // namespace jouleprof::analysis
