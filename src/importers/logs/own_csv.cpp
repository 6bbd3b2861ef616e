// CSV of this tool: what `monitor --format csv` prints, and what `export` writes as csv (power),
// counters and gauges. A row is of one device, or of one sensor of it.
#include <fmt/format.h>

#include <array>

#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 25> kFields{
    {{"time_unix_seconds", LogRole::kStamp},
     {"time_seconds", LogRole::kStamp},
     {"elapsed_seconds", LogRole::kStamp},
     {"device", LogRole::kDevice},
     {"domain", LogRole::kDomain},
     {"name", LogRole::kName},
     {"provenance", LogRole::kProvenance},
     {"sensor", LogRole::kSensor},
     {"quantity", LogRole::kSensor},
     {"power_watts", LogRole::kValue, "W", kPowerInstant, "power_watts"},
     {"energy_joules", LogRole::kValue, "J", kEnergyCounter, "energy_joules"},
     {"value", LogRole::kValue, "", kGauge, "value"},
     {gauge::kPowerLimit, LogRole::kValue, "W", kGauge, gauge::kPowerLimit},
     {gauge::kTemperature, LogRole::kValue, "C", kGauge, gauge::kTemperature},
     {gauge::kMemoryTemperature, LogRole::kValue, "C", kGauge, gauge::kMemoryTemperature},
     {gauge::kFanSpeed, LogRole::kValue, "", kGauge, gauge::kFanSpeed},
     {"utilisation_ratio", LogRole::kValue, "", kGauge, gauge::kGpuUtilisation},
     {gauge::kMemoryUtilisation, LogRole::kValue, "", kGauge, gauge::kMemoryUtilisation},
     {gauge::kEncoderUtilisation, LogRole::kValue, "", kGauge, gauge::kEncoderUtilisation},
     {gauge::kDecoderUtilisation, LogRole::kValue, "", kGauge, gauge::kDecoderUtilisation},
     {gauge::kJpegUtilisation, LogRole::kValue, "", kGauge, gauge::kJpegUtilisation},
     {gauge::kOfaUtilisation, LogRole::kValue, "", kGauge, gauge::kOfaUtilisation},
     {gauge::kSmClock, LogRole::kValue, "Hz", kGauge, gauge::kSmClock},
     {gauge::kMemoryClock, LogRole::kValue, "Hz", kGauge, gauge::kMemoryClock},
     {gauge::kMemoryUsed, LogRole::kValue, "B", kGauge, gauge::kMemoryUsed}}};

constexpr LogTool kTool{.format = "jouleprof",
                        .name = "jouleprof",
                        .advice = "export --format csv or --format counters has power",
                        .fields = kFields,
                        .has_row_a_sensor = true};

// The power of `monitor` is computed from its energy.
constexpr std::array<LogField, kFields.size() - 1> without_power() {
  std::array<LogField, kFields.size() - 1> out{};
  std::size_t to = 0;
  for (const LogField& field : kFields) {
    if (field.name != "power_watts") out[to++] = field;
  }
  return out;
}
constexpr auto kMonitorFields = without_power();
constexpr LogTool kMonitorTool{
    .format = "jouleprof", .name = "jouleprof monitor", .fields = kMonitorFields};

// Of windows, domains, processes or kernels: figures, of which no recording can be made again.
bool is_table_of_figures(std::string_view text) {
  return has_columns(text, {{"provenance"}, {"interval_low_joules", "own_pid"}});
}

bool recognises_own_csv(std::string_view text) {
  return is_table_of_figures(text) ||
         has_columns(text, {{"time_unix_seconds"}, {"device"}, {"domain"}});
}

Result<model::Recording> read_own_csv(std::span<const SourceText> sources,
                                      const ImportOptions& options) {
  if (is_table_of_figures(sources.front().text)) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: a table of figures that `jouleprof export` wrote. Without its "
                            "readings they would lose their intervals: import the *.jprof's "
                            "export of csv or counters, or report the *.jprof itself",
                            sources.front().path));
  }
  const bool is_monitor = has_columns(sources.front().text, {{"elapsed_seconds"}});
  RowLog log(is_monitor ? kMonitorTool : kTool, options);
  for (const SourceText& source : sources) {
    if (auto read = log.read(source); !read) return forward_error(read);
  }
  return std::move(log).finish();
}

}  // namespace

extern const Importer kOwnCsvImporter{
    {"jouleprof", "CSV of this tool: monitor --format csv; export --format csv, counters, gauges"},
    true,
    recognises_own_csv,
    read_own_csv};

}  // namespace jouleprof::importers
