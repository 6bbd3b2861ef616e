// The power log of the old zeus_monitor program: "Time,Power[,Temp][,SMFreq][,Mem]", one GPU a
// file. Time is UTC with nanoseconds, Power in mW (nvmlDeviceGetPowerUsage), SMFreq in MHz, Mem in
// bytes. A name or a value may carry its unit: "Power [W]", "32402 mW", "1380 MHz".
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "importers/row_log.h"
#include "importers/source_text.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

using enum model::SensorKind;
namespace gauge = model::gauge;

constexpr std::array<LogField, 5> kFields{
    {{"time", Role::kStamp},
     {"power", Role::kValue, "mW", kPowerAverage, "nvmlDeviceGetPowerUsage"},
     {"temp", Role::kValue, "C", kGauge, gauge::kTemperature},
     {"smfreq", Role::kValue, "MHz", kGauge, gauge::kSmClock},
     {"mem", Role::kValue, "B", kGauge, gauge::kMemoryUsed}}};

constexpr LogTool kTool{.format = "zeus-monitor",
                        .name = "zeus_monitor",
                        .advice = "its header needs the columns Time and Power",
                        .fields = kFields,
                        .times_are_utc = true};

bool recognises_zeus_monitor(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "Time") &&
         std::any_of(header.begin(), header.end(),
                     [](const std::string& name) { return split_unit(name).word == "Power"; });
}

Result<model::Recording> read_zeus_monitor(std::span<const SourceText> sources,
                                           const ImportOptions& options) {
  RowLog log(kTool, options);
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

const Importer kZeusMonitorImporter{
    {"zeus-monitor", "power log of Zeus's zeus_monitor (Time,Power); several files: one a GPU"},
    true,
    recognises_zeus_monitor,
    read_zeus_monitor};

}  // namespace jouleprof::importers
