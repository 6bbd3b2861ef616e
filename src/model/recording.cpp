#include "model/recording.h"

#include <algorithm>

namespace jouleprof::model {

bool is_at_rest_around_traces(const RunInfo& run) {
  return run.source == "attach" || run.source.starts_with("import:");
}

bool is_simulated(const Recording& recording) {
  return std::any_of(recording.sensors.begin(), recording.sensors.end(), [](const Sensor& sensor) {
    return sensor.provenance == Provenance::kSimulated;
  });
}

}  // namespace jouleprof::model
