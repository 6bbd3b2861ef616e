// CSV of this tool: what `monitor --format csv` prints, and what `export` writes as csv (power),
// counters and gauges. A row is of one device, or of one sensor of it.
#include <fmt/format.h>

#include <array>

#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 25> kFields{
    {{"time_unix_seconds", Role::kStamp},
     {"time_seconds", Role::kStamp},
     {"elapsed_seconds", Role::kStamp},
     {"device", Role::kDevice},
     {"domain", Role::kDomain},
     {"name", Role::kName},
     {"provenance", Role::kProvenance},
     {"sensor", Role::kSensor},
     {"quantity", Role::kSensor},
     {"power_watts", Role::kValue, "W", kPowerInstant, "power_watts"},
     {"energy_joules", Role::kValue, "J", kEnergyCounter, "energy_joules"},
     {"value", Role::kValue, "", kGauge, "value"},
     {gauge::kPowerLimit, Role::kValue, "W", kGauge, gauge::kPowerLimit},
     {gauge::kTemperature, Role::kValue, "C", kGauge, gauge::kTemperature},
     {gauge::kMemoryTemperature, Role::kValue, "C", kGauge, gauge::kMemoryTemperature},
     {gauge::kFanSpeed, Role::kValue, "", kGauge, gauge::kFanSpeed},
     {"utilisation_ratio", Role::kValue, "", kGauge, gauge::kGpuUtilisation},
     {gauge::kMemoryUtilisation, Role::kValue, "", kGauge, gauge::kMemoryUtilisation},
     {gauge::kEncoderUtilisation, Role::kValue, "", kGauge, gauge::kEncoderUtilisation},
     {gauge::kDecoderUtilisation, Role::kValue, "", kGauge, gauge::kDecoderUtilisation},
     {gauge::kJpegUtilisation, Role::kValue, "", kGauge, gauge::kJpegUtilisation},
     {gauge::kOfaUtilisation, Role::kValue, "", kGauge, gauge::kOfaUtilisation},
     {gauge::kSmClock, Role::kValue, "Hz", kGauge, gauge::kSmClock},
     {gauge::kMemoryClock, Role::kValue, "Hz", kGauge, gauge::kMemoryClock},
     {gauge::kMemoryUsed, Role::kValue, "B", kGauge, gauge::kMemoryUsed}}};

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
bool is_table_of_figures(const Cells& header) {
  return find_column(header, "provenance") &&
         (find_column(header, "interval_low_joules") || find_column(header, "own_pid"));
}

bool recognises_own_csv(std::string_view text) {
  const auto header = csv_header(text);
  if (is_table_of_figures(header)) return true;
  return find_column(header, "time_unix_seconds") && find_column(header, "device") &&
         find_column(header, "domain");
}

Result<model::Recording> read_own_csv(std::span<const SourceText> sources,
                                      const ImportOptions& options) {
  const auto header = csv_header(sources.front().text);
  if (is_table_of_figures(header)) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: a table of figures that `jouleprof export` wrote. Without its "
                            "readings they would lose their intervals: import the *.jprof's "
                            "export of csv or counters, or report the *.jprof itself",
                            sources.front().path));
  }
  const bool is_monitor = find_column(header, "elapsed_seconds").has_value();
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
