#include "analysis/timeline/sensors/observed_sensor.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kFewest = 20;  // new values
constexpr double kLonger = 1.5;      // times the trait
constexpr double kLongest = 0.5;     // seconds: a longer one is a steady load
// Equal values hide updates, so that the shortest intervals between new values show the period.
constexpr double kQuantile = 0.1;
constexpr double kReadsInPeriod = 3;

double quantile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Seconds between new values; absent with too few of them, or where most reads are new.
std::optional<double> period_of(std::span<const model::PowerReading> readings) {
  std::vector<double> between_reads;
  std::vector<double> between_values;
  std::optional<HostTime> last;  // when the value changed
  for (std::size_t i = 1; i < readings.size(); ++i) {
    between_reads.push_back(seconds(readings[i].at - readings[i - 1].at));
    if (readings[i].power == readings[i - 1].power) continue;
    if (last) between_values.push_back(seconds(readings[i].at - *last));
    last = readings[i].at;
  }
  if (between_values.size() < kFewest) return std::nullopt;
  const double period = quantile(between_values, kQuantile);
  if (period < kReadsInPeriod * quantile(between_reads, 0.5)) return std::nullopt;
  return period;
}

}  // namespace

model::Sensor as_observed(model::Sensor sensor, std::span<const model::PowerReading> readings) {
  if (sensor.kind != model::SensorKind::kPowerInstant || !sensor.traits.refresh) return sensor;
  const auto period = period_of(readings);
  const double known = seconds(*sensor.traits.refresh);
  if (period && *period > kLonger * known && *period <= kLongest) {
    sensor.traits.refresh = duration_of(*period);
  }
  return sensor;
}

}  // namespace jouleprof::analysis
