// Logs of `nvidia-smi --query-gpu=timestamp,index,power.draw,...
// --format=csv[,nounits][,noheader]`.
//
// One row a GPU and look. A header may come again (logs appended to one file). Without index, uuid
// or bus id the rows of one look are separated by their times: they come within milliseconds.
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
using enum LogRole;
namespace gauge = model::gauge;

// Names that nvidia-smi takes, and those that it prints for them.
constexpr std::array<LogField, 29> kFields{
    {{"timestamp", kStamp},
     {"index", kIndex},
     {"uuid", kUuid},
     {"gpu_uuid", kUuid},
     {"pci.bus_id", kBus},
     {"gpu_bus_id", kBus},
     {"name", kName},
     {"gpu_name", kName},
     {"power.draw", kValue, "W", kPowerAverage, "nvidia-smi power.draw", true},
     {"power.draw.average", kValue, "W", kPowerAverage, "nvidia-smi power.draw.average", true},
     {"power.draw.instant", kValue, "W", kPowerInstant, "nvidia-smi power.draw.instant"},
     {"power.limit", kValue, "W", kGauge, gauge::kPowerLimit},
     {"enforced.power.limit", kValue, "W", kGauge, gauge::kPowerLimit},
     {"temperature.gpu", kValue, "C", kGauge, gauge::kTemperature},
     {"temperature.memory", kValue, "C", kGauge, gauge::kMemoryTemperature},
     {"utilization.gpu", kValue, "%", kGauge, gauge::kGpuUtilisation},
     {"utilization.memory", kValue, "%", kGauge, gauge::kMemoryUtilisation},
     {"utilization.encoder", kValue, "%", kGauge, gauge::kEncoderUtilisation},
     {"utilization.decoder", kValue, "%", kGauge, gauge::kDecoderUtilisation},
     {"utilization.jpeg", kValue, "%", kGauge, gauge::kJpegUtilisation},
     {"utilization.ofa", kValue, "%", kGauge, gauge::kOfaUtilisation},
     {"memory.used", kValue, "MiB", kGauge, gauge::kMemoryUsed},
     {"clocks.current.sm", kValue, "MHz", kGauge, gauge::kSmClock},
     {"clocks.sm", kValue, "MHz", kGauge, gauge::kSmClock},
     {"clocks.current.memory", kValue, "MHz", kGauge, gauge::kMemoryClock},
     {"clocks.current.mem", kValue, "MHz", kGauge, gauge::kMemoryClock},
     {"clocks.memory", kValue, "MHz", kGauge, gauge::kMemoryClock},
     {"clocks.mem", kValue, "MHz", kGauge, gauge::kMemoryClock},
     {"fan.speed", kValue, "%", kGauge, gauge::kFanSpeed}}};

// A header has power.draw, or the time and something of a GPU.
bool is_header(std::string_view line) {
  if (line.find("power.draw") == std::string_view::npos &&
      line.find("timestamp") == std::string_view::npos) {
    return false;
  }
  const Cells cells = csv_cells(line);
  return std::ranges::any_of(cells, [](const std::string& cell) {
    const std::string name = lower_case(split_unit(cell).word);
    return std::ranges::any_of(
        kFields, [&](const LogField& field) { return field.role == kValue && field.name == name; });
  });
}

// Of nohup or nvidia-smi, in a file that has their stderr, too.
bool is_message(std::string_view line) { return line.find(',') == std::string_view::npos; }

// The columns of a log without header, where its first row leaves no doubt: a time, and one field
// in watts. All others are left out.
std::optional<Cells> guess_header(const Cells& row) {
  Cells names;
  bool has_time = false, has_power = false;
  for (const std::string& cell : row) {
    const auto time = parse_log_time(cell);
    if (time && time->kind != LogTime::Kind::kElapsed) {
      names.emplace_back("timestamp");
      has_time = true;
    } else if (cell.starts_with("GPU-")) {
      names.emplace_back("uuid");
    } else if (split_unit(cell).unit == "W") {
      if (has_power) return std::nullopt;  // which of them is the draw?
      names.emplace_back("power.draw");
      has_power = true;
    } else {
      names.push_back(cell);
    }
  }
  if (!has_time || !has_power) return std::nullopt;
  return names;
}

constexpr LogTool kTool{.format = "nvidia-smi",
                        .name = "nvidia-smi",
                        .advice = "log it with --query-gpu=timestamp,index,power.draw",
                        .fields = kFields,
                        .is_header = is_header,
                        .is_message = is_message,
                        .numbers_by_look = true,
                        .headers_begin_sections = true,
                        .is_polled_mean = true};

bool recognises_nvidia_smi(std::string_view text) {
  const bool semicolons = has_semicolons(text);
  constexpr std::size_t kMessages = 5;  // lines before the log
  for (Lines lines(text); lines.next() && lines.number() <= kMessages;) {
    std::string line(trim(lines.text()));
    if (semicolons) {
      std::erase(line, '"');
      std::ranges::replace(line, ';', ',');
    }
    if (is_header(line) || guess_header(csv_cells(line))) return true;
    if (line.find(',') != std::string_view::npos) return false;
  }
  return false;
}

Result<model::Recording> read_nvidia_smi(std::span<const SourceText> sources,
                                         const ImportOptions& options) {
  SourceText source = sources.front();
  if (has_semicolons(source.text)) {
    auto text = with_commas(source);
    if (!text) return forward_error(text);
    source.text = std::move(*text);
  }
  RowLog log(kTool, options);
  log.on_missing_header = [&](const Cells& row) -> Result<Cells> {
    if (!options.columns.empty()) {
      Cells names;
      for (const auto name : split(options.columns, ',')) names.emplace_back(trim(name));
      return names;
    }
    if (auto names = guess_header(row)) return std::move(*names);
    return fail(Errc::kCorrupt,
                "values without a header: give the list of --query-gpu with --columns, such as "
                "--columns timestamp,index,power.draw");
  };
  if (auto read = log.read(source); !read) return forward_error(read);
  bool any = false;
  for (const LogRow& row : log.rows()) {
    any = any || log.value(row, "nvidia-smi power.draw").has_value();
  }
  if (any) {
    log.builder().warn(
        "power.draw is the mean of the last second on Ampere and newer boards; on older ones it is "
        "the power of 10 to 100 ms, and the log does not say which");
  }
  return std::move(log).finish();
}

}  // namespace

extern const Importer kNvidiaSmiImporter{
    {"nvidia-smi", "nvidia-smi --query-gpu=...,power.draw,... --format=csv"},
    false,
    recognises_nvidia_smi,
    read_nvidia_smi};

}  // namespace jouleprof::importers
