// The latest power of every domain, for a line of live status. Not for energy.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "model/domain.h"
#include "model/readings.h"
#include "model/sensor.h"

namespace jouleprof::session {

class LivePower {
 public:
  explicit LivePower(const std::vector<model::Sensor>& sensors);

  void add(const model::Readings& readings);

  // The mean of the newest batch of the domain's quickest sensor. Absent when there is none, and
  // once it is older than ten seconds.
  std::optional<Power> of(model::DomainId domain, HostTime now) const;

 private:
  struct Track {
    model::DomainId domain{};
    int rank = 0;  // the lowest is shown
    Duration shortest_difference{};
    std::optional<model::CounterReading> counter;  // where the current difference began
    std::optional<Power> power;
    HostTime at{};
  };
  std::unordered_map<model::SensorId, Track> tracks_;
};

}  // namespace jouleprof::session
