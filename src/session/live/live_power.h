// The latest power of every domain. For display: energies come from a timeline.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "model/device/readings.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::session {

class LivePower {
 public:
  explicit LivePower(const std::vector<model::Sensor>& sensors);

  void append(const model::Readings& readings);

  struct Value {
    Power power;
    model::Provenance provenance{};
  };
  // The mean of the newest batch of the domain's fastest sensor, with that sensor's provenance.
  // Absent when there is none, and once it is older than ten seconds.
  std::optional<Value> of(model::DomainId domain, HostTime now) const;

  // When the domain's newest reading of energy or power was taken; absent before the first.
  std::optional<HostTime> newest(model::DomainId domain) const;

 private:
  struct Track {
    model::DomainId domain{};
    model::Provenance provenance{};
    int rank = 0;  // the lowest is shown
    Duration shortest_difference{};
    std::optional<model::CounterReading> counter;  // where the current difference began
    std::optional<Power> power;
    HostTime at{};  // of `power`
    std::optional<HostTime> newest;
  };
  std::unordered_map<model::SensorId, Track> tracks_;
};

}  // namespace jouleprof::session
