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
};

// A domain's counter, and the power sensor with the most detail (sample buffer, then instant, then
// average power). A measured counter is never combined with an estimate. `has_readings`: by sensor.
// Absent when no sensor of the domain has readings.
std::optional<TimelineSensors> choose_sensors(const std::vector<model::Sensor>& sensors,
                                              model::DomainId domain,
                                              const std::vector<bool>& has_readings);

}  // namespace jouleprof::analysis
