// Which of a domain's sensors a timeline is made of.
#pragma once

#include <optional>
#include <vector>

#include "model/sensor.h"

namespace jouleprof::analysis {

// The sensors of one domain that a timeline is made of; at least one is present.
struct TimelineSensors {
  std::optional<model::Sensor> counter;
  std::optional<model::Sensor> power;
};

// The best use of a domain's sensors: its counter, with the power sensor that shows most (ring
// before instant before average). A measured counter is never shaped by an estimate. `has_readings`
// tells whether a sensor said anything. Absent when none did.
std::optional<TimelineSensors> choose_sensors(const std::vector<model::Sensor>& sensors,
                                              model::DomainId domain,
                                              const std::vector<bool>& has_readings);

}  // namespace jouleprof::analysis
