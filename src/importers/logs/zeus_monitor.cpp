// The power log of the old zeus_monitor program: "Time,Power[,Temp][,SMFreq][,Mem]", one GPU a
// file. Time is UTC with nanoseconds, SMFreq in MHz, Mem in bytes. A name or a value may carry its
// unit: "Power [W]", "32402 mW", "1380 MHz". Without one, Power is in mW, as
// nvmlDeviceGetPowerUsage gives it, or in W, which later versions and ZeusProfilingService write.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/median.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 6> kFields{
    {{"time", LogRole::kStamp},
     {"power", LogRole::kValue, "mW", kPowerAverage, "nvmlDeviceGetPowerUsage"},
     {"temp", LogRole::kValue, "C", kGauge, gauge::kTemperature},
     {"smfreq", LogRole::kValue, "MHz", kGauge, gauge::kSmClock},
     {"mem", LogRole::kValue, "B", kGauge, gauge::kMemoryUsed},
     {"provenance", LogRole::kProvenance}}};  // of our own

constexpr std::array<LogField, 6> in_watts() {
  auto fields = kFields;
  fields[1].unit = "W";
  return fields;
}
constexpr auto kFieldsInWatts = in_watts();

constexpr LogTool kTool{.format = "zeus-monitor",
                        .name = "zeus_monitor",
                        .advice = "its header needs the columns Time and Power",
                        .fields = kFields,
                        .times_are_utc = true};
constexpr LogTool with_watts() {
  LogTool tool = kTool;
  tool.fields = kFieldsInWatts;
  return tool;
}
constexpr LogTool kToolInWatts = with_watts();

// The median of the numbers under Power that have no unit; nothing where the header has it.
std::optional<double> typical_power(std::span<const SourceText> sources) {
  std::vector<double> values;
  for (const SourceText& source : sources) {
    const auto place = find_column(csv_header(source.text), "Power");
    for (Lines lines(source.text); place && lines.next();) {
      const auto cells = split_csv(lines.text());
      if (!cells || *place >= cells->size()) continue;
      if (const auto value = parse_number(trim((*cells)[*place]))) values.push_back(*value);
    }
  }
  if (values.empty()) return std::nullopt;
  return upper_median(std::move(values));
}

bool recognises_zeus_monitor(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "Time") &&
         std::any_of(header.begin(), header.end(),
                     [](const std::string& name) { return split_unit(name).word == "Power"; });
}

Result<model::Recording> read_zeus_monitor(std::span<const SourceText> sources,
                                           const ImportOptions& options) {
  constexpr double kMostWatts = 1500;  // of a board
  const auto typical = typical_power(sources);
  const bool in_watts = typical && *typical <= kMostWatts;
  RowLog log(in_watts ? kToolInWatts : kTool, options);
  if (typical) {
    log.builder().warn(
        fmt::format("the log does not state the unit of Power: {:g} is taken to be in {}", *typical,
                    in_watts ? "W" : "mW"));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (auto read = log.read(sources[i], fmt::format("gpu{}", i)); !read) {
      return forward_error(read);
    }
  }
  log.builder().warn(
      sources.size() == 1
          ? "the log does not say which GPU it is of: it is called gpu0"
          : "the logs do not say which GPUs they are of: they are numbered as given");
  log.builder().warn(
      "the power was polled: a mean over the last second on Ampere and newer boards, over 10 to "
      "100 ms on older ones, and the log does not say which");
  return std::move(log).finish();
}

}  // namespace

extern const Importer kZeusMonitorImporter{
    {"zeus-monitor", "power log of Zeus's zeus_monitor (Time,Power); several files: one a GPU"},
    true,
    recognises_zeus_monitor,
    read_zeus_monitor};

}  // namespace jouleprof::importers
