// Rows of devices' figures over time, as power logs have them, on their way into a recording.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "importers/builder.h"
#include "importers/timeline.h"

namespace jouleprof::importers {

struct LogColumn {
  model::SensorKind kind{};  // of each device's sensor
  std::string sensor;        // its name
  double scale = 1;          // to watts, joules or the gauge's SI unit
  std::optional<Duration> window = {};
};

struct LogDevice {
  model::DomainKind kind{};
  std::string device;
  std::string name;
  std::string uuid = {};
};

struct LogRow {
  Duration stamp{};
  std::size_t device = 0;                          // index of `devices`
  std::vector<std::optional<double>> values = {};  // one for each column, in the log's units
  bool starts_section = false;                     // the tool was not recording just before
};

struct DeviceLog {
  std::vector<LogColumn> columns;
  std::vector<LogDevice> devices;
  std::vector<LogRow> rows;  // in the file's order
};

// Adds domains, sensors and readings. A round ends where a device comes again: pauses are looked
// for between rounds, so that the small distances within one do not count. A sensor is made when
// its first value appears; later missing powers are failures, missing gauges and counters nothing.
// A device without power and counter gets `unavailable_reason`. Returns where the rounds lie.
Layout add_log(const DeviceLog& log, RecordingBuilder& builder, Duration seam,
               const std::string& unavailable_reason);

}  // namespace jouleprof::importers
