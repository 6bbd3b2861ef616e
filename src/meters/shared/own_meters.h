// Meters that take the place of a service in the middle of a measurement.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "meters/meter.h"

namespace jouleprof::meters::shared {

// Reads those of their sensors that are among the given ones: of the same device, name and kind.
// The readings have the given sensors' ids. Thread safety: one thread calls everything.
class OwnMeters {
 public:
  OwnMeters(std::vector<std::unique_ptr<Meter>> meters, const std::vector<model::Domain>& domains,
            const std::vector<model::Sensor>& sensors);

  // Of the given sensors, those that none of the meters has.
  const std::vector<model::Sensor>& absent() const { return absent_; }

  // Reads the probes that are due, or `all`. Returns when to read next.
  HostTime read(bool all, model::Readings& out);
  // As Meter's.
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(model::Readings& out);

 private:
  struct Source {
    std::unique_ptr<Meter> meter;
    std::vector<std::optional<model::SensorId>> sensors;  // by the meter's own ids
    std::vector<std::optional<model::DomainId>> domains;
    std::vector<HostTime> due;  // of its probes
  };
  void take(const Source& source, model::Readings& out);

  std::vector<Source> sources_;
  std::vector<model::Sensor> absent_;
  model::Readings scratch_;
};

}  // namespace jouleprof::meters::shared
