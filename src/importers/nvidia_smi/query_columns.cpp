#include "importers/nvidia_smi/query_columns.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "importers/csv_table.h"
#include "importers/stamps.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr double kMebibyte = 1024.0 * 1024.0;

// Names that nvidia-smi takes, and those that it prints for them.
constexpr std::array<QueryField, 21> kFields{
    {{"power.draw", "W", kPowerAverage, "nvidia-smi power.draw"},
     {"power.draw.average", "W", kPowerAverage, "nvidia-smi power.draw.average"},
     {"power.draw.instant", "W", kPowerInstant, "nvidia-smi power.draw.instant"},
     {"power.limit", "W", kGauge, gauge::kPowerLimit},
     {"enforced.power.limit", "W", kGauge, gauge::kPowerLimit},
     {"temperature.gpu", "C", kGauge, gauge::kTemperature},
     {"temperature.memory", "C", kGauge, gauge::kMemoryTemperature},
     {"utilization.gpu", "%", kGauge, gauge::kGpuUtilisation, 0.01},
     {"utilization.memory", "%", kGauge, gauge::kMemoryUtilisation, 0.01},
     {"utilization.encoder", "%", kGauge, gauge::kEncoderUtilisation, 0.01},
     {"utilization.decoder", "%", kGauge, gauge::kDecoderUtilisation, 0.01},
     {"utilization.jpeg", "%", kGauge, gauge::kJpegUtilisation, 0.01},
     {"utilization.ofa", "%", kGauge, gauge::kOfaUtilisation, 0.01},
     {"memory.used", "MiB", kGauge, gauge::kMemoryUsed, kMebibyte},
     {"clocks.current.sm", "MHz", kGauge, gauge::kSmClock, 1e6},
     {"clocks.sm", "MHz", kGauge, gauge::kSmClock, 1e6},
     {"clocks.current.memory", "MHz", kGauge, gauge::kMemoryClock, 1e6},
     {"clocks.current.mem", "MHz", kGauge, gauge::kMemoryClock, 1e6},
     {"clocks.memory", "MHz", kGauge, gauge::kMemoryClock, 1e6},
     {"clocks.mem", "MHz", kGauge, gauge::kMemoryClock, 1e6},
     {"fan.speed", "%", kGauge, gauge::kFanSpeed, 0.01}}};

}  // namespace

bool QueryColumns::has_power() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const QueryField* field) { return field && field->kind != kGauge; });
}

QueryColumns parse_query_columns(const std::vector<std::string>& names) {
  QueryColumns columns;
  std::vector<std::string_view> taken;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [word, unit] = split_unit(trim(names[i]));
    const std::string name = lower_case(word);
    columns.fields.push_back(nullptr);
    if (name == "timestamp") {
      columns.time = i;
    } else if (name == "index") {
      columns.index = i;
    } else if (name == "uuid" || name == "gpu_uuid") {
      columns.uuid = i;
    } else if (name == "pci.bus_id" || name == "gpu_bus_id") {
      columns.bus = i;
    } else {
      const auto known = std::find_if(kFields.begin(), kFields.end(),
                                      [&](const QueryField& f) { return f.name == name; });
      if (known == kFields.end() ||
          std::find(taken.begin(), taken.end(), known->sensor) != taken.end()) {
        columns.left_out.push_back(name);
        continue;
      }
      if (!unit.empty() && unit != known->unit) columns.wrong_unit = names[i];
      taken.push_back(known->sensor);
      columns.fields.back() = &*known;
    }
  }
  return columns;
}

std::optional<QueryColumns> guess_query_columns(const std::vector<std::string>& row) {
  QueryColumns columns;
  columns.fields.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string_view cell = trim(row[i]);
    const auto [word, unit] = split_unit(cell);
    if (parse_query_time(cell)) {
      columns.time = i;
    } else if (cell.starts_with("GPU-")) {
      columns.uuid = i;
    } else if (unit == "W") {
      if (columns.has_power()) return std::nullopt;  // which of them is the draw?
      columns.fields[i] = &kFields.front();
    } else {
      columns.left_out.push_back(std::string(cell));
    }
  }
  if (!columns.time || !columns.has_power()) return std::nullopt;
  return columns;
}

std::optional<Duration> parse_query_time(std::string_view text) {
  std::string time(trim(text));
  if (time.size() < 19) return std::nullopt;
  if (time[4] == '/' && time[7] == '/') time[4] = time[7] = '-';
  return parse_calendar_time(time);
}

bool is_absent(std::string_view cell) {
  cell = trim(cell);
  return cell.empty() || cell.starts_with('[') || cell == "N/A" || cell == "ERR!" ||
         cell == "Not Supported" || cell == "Unknown Error" || lower_case(cell) == "nan";
}

}  // namespace jouleprof::importers
