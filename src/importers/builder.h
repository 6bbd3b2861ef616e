// Collects an importer's data into a recording.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "importers/timeline.h"
#include "model/recording.h"

namespace jouleprof::importers {

// An import is complete: a file that ends within a row lacks that row, and a warning names it.
class RecordingBuilder {
 public:
  explicit RecordingBuilder(const std::string& format);

  model::DomainId add_domain(model::DomainKind kind, std::string device, std::string name);
  model::SensorId add_sensor(model::DomainId domain, model::SensorKind kind, std::string name);
  model::Domain& domain(model::DomainId id);

  // A reading at `at`. Absent watts and impossible ones (negative, or 100 kW and more: error codes
  // that a tool wrote as numbers) become a ReadFailure.
  void add_power(model::SensorId sensor, HostTime at, std::optional<double> watts);
  void add_gauge(model::SensorId sensor, HostTime at, double value);
  void warn(std::string text);

  // Clock points at both ends of every segment, and a warning when something was cut out.
  // Without `to_real` the stamps' clock has no known relation to the wall clock.
  void set_clock(const Layout& layout, RealTime (*to_real)(Duration));

  // Ends the recording. The work is [begin, end] unless run().work_begin was set.
  // Errors: unavailable when no sensor has two readings of power or of an energy counter.
  Result<model::Recording> finish(const std::string& path, HostTime begin, HostTime end) &&;
  // The same without the check, for files without power readings.
  model::Recording take() && { return std::move(recording_); }

  model::Recording& recording() { return recording_; }

 private:
  model::Recording recording_;
  std::size_t impossible_ = 0;
};

}  // namespace jouleprof::importers
