// The lines of `nvidia-smi dmon` and `nvidia-smi pmon`, and the work that they show.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "importers/row_log.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {

// The columns that are read. pwr follows the driver's average field (Ampere and newer).
inline constexpr std::array<LogField, 16> kDmonFields{
    {{"date", LogRole::kDate},
     {"time", LogRole::kTime},
     {"gpu", LogRole::kIndex},
     {"pwr", LogRole::kValue, "W", model::SensorKind::kPowerAverage, "nvidia-smi dmon pwr", true},
     {"gtemp", LogRole::kValue, "C", model::SensorKind::kGauge, model::gauge::kTemperature},
     {"temp", LogRole::kValue, "C", model::SensorKind::kGauge, model::gauge::kTemperature},
     {"mtemp", LogRole::kValue, "C", model::SensorKind::kGauge, model::gauge::kMemoryTemperature},
     {"sm", LogRole::kValue, "%", model::SensorKind::kGauge, model::gauge::kGpuUtilisation},
     {"mem", LogRole::kValue, "%", model::SensorKind::kGauge,
      model::gauge::kMemoryUtilisation},  // of time, not of space
     {"enc", LogRole::kValue, "%", model::SensorKind::kGauge, model::gauge::kEncoderUtilisation},
     {"dec", LogRole::kValue, "%", model::SensorKind::kGauge, model::gauge::kDecoderUtilisation},
     {"jpg", LogRole::kValue, "%", model::SensorKind::kGauge, model::gauge::kJpegUtilisation},
     {"ofa", LogRole::kValue, "%", model::SensorKind::kGauge, model::gauge::kOfaUtilisation},
     {"mclk", LogRole::kValue, "MHz", model::SensorKind::kGauge, model::gauge::kMemoryClock},
     {"pclk", LogRole::kValue, "MHz", model::SensorKind::kGauge, model::gauge::kSmClock},
     {"fb", LogRole::kValue, "MB", model::SensorKind::kGauge, model::gauge::kMemoryUsed}}};

// The cells of a line, without the '#' in front: between commas where there are any, else between
// blanks.
Cells dmon_cells(std::string_view line);

// A header line: [Date] [Time] gpu, then columns. CSV may leave out the '#'.
struct DmonHeader {
  Cells names;                 // in lower case, without units
  bool is_pmon = false;        // it has a column pid
  bool has_instances = false;  // of MIG
  bool has_times = false;
};
std::optional<DmonHeader> parse_dmon_header(std::string_view line);

// Why a log with and without times is refused.
inline constexpr std::string_view kOtherTimes =
    "the header has other time columns than the one before; import the logs apart";

// --- The work and the idle interval before it in a dmon log, which marks neither ---
//
// A look is one round of dmon over all GPUs.
// Active: some GPU has sm >= 30 %. The work is everything from the first active look to the last
// one, less one look on each side, since those two are only partly busy. Idle: the leading looks in
// which every GPU has sm = 0 and its SM clock (pclk) at the lowest value that it has anywhere in
// the log. When the log has an active look, that lowest value must be at most half of the GPU's
// highest one: else the clocks never fell, and the power is not that of an idle GPU. A GPU whose sm
// or pclk is not given (MIG, or other columns were logged) is never idle.

inline constexpr double kActiveSmRatio = 0.3;

struct GpuLook {
  std::size_t gpu = 0;
  std::optional<double> sm;     // of 1
  std::optional<double> clock;  // of the SMs, in any one unit
};
using Look = std::vector<GpuLook>;

struct LookRange {
  std::size_t first = 0;
  std::size_t last = 0;  // inclusive

  bool operator==(const LookRange&) const = default;
};

struct DmonActivity {
  std::size_t idle_looks = 0;  // how many the log begins with
  // Absent without an active look. Not trimmed when fewer than three looks lie within.
  std::optional<LookRange> work;
};

DmonActivity find_activity(const std::vector<Look>& looks);

}  // namespace jouleprof::importers
