#include "analysis/timeline/sensors/observed_sensor.h"

#include <algorithm>
#include <array>
#include <cmath>
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

// Of counters.
constexpr double kClearlyLonger =
    1.35;  // times the known period: an update is seen up to 1.28 late
constexpr double kUsualPeriods[] = {0.2, 0.25, 0.5, 1, 2, 5, 10};  // seconds

// Of a buffer's stamps, in periods.
constexpr double kLateStamp = 0.05;
constexpr double kLatestStamp = 0.6;
constexpr double kRegular = 0.06;
constexpr std::size_t kMostLate = kStampsLookedAt - 2;  // in a row

bool whole_periods(double length, double period, double tolerance) {
  return std::abs(std::remainder(length, period)) <= tolerance * period;
}

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

std::size_t mend_late_stamps(std::span<double> stamps, double next, double period) {
  for (std::size_t late = 1; late <= kMostLate && late + 2 <= stamps.size(); ++late) {
    const double before = stamps[stamps.size() - late - 1];
    const double earlier = stamps[stamps.size() - late - 2];
    if (!whole_periods(before - earlier, period, kRegular) ||
        !whole_periods(next - before, period, 2 * kRegular)) {
      continue;
    }
    const auto between = stamps.last(late);
    std::array<double, kMostLate> turns{};
    double turn = 0;
    bool any = false;
    for (std::size_t i = 0; i < late; ++i) {
      const double periods = (between[i] - before) / period;
      const double own = std::floor(periods + 1 - kLatestStamp);
      if (own <= turn) return 0;
      any = any || periods - own > kLateStamp;
      turn = own;
      turns[i] = before + own * period;
    }
    if (!any || next - turns[late - 1] < (1 - 2 * kRegular) * period) return 0;
    std::copy_n(turns.begin(), late, between.begin());
    return late;
  }
  return 0;
}

std::vector<bool> off_turn(std::span<const double> stamps, double period) {
  std::vector<bool> out(stamps.size());
  std::size_t count = 0;
  for (std::size_t i = 1; i + 1 < stamps.size(); ++i) {
    out[i] = !whole_periods(stamps[i] - stamps[i - 1], period, kRegular) &&
             !whole_periods(stamps[i + 1] - stamps[i], period, kRegular);
    count += out[i] ? 1 : 0;
  }
  if (count == 0 || 5 * count > stamps.size()) return {};
  return out;
}

void CounterPeriod::see(const model::CounterReading& reading) {
  if (!first_) {
    first_ = newest_ = reading;
    return;
  }
  if (reading.total == first_->total) {
    newest_ = reading;
    return;
  }
  const double least = std::max(seconds(newest_->before - first_->after), 0.0);
  const double most =
      before_ ? seconds(reading.after - *before_) : std::numeric_limits<double>::infinity();
  if (least > unchanged_) unchanged_ = least, unchanged_at_most_ = most;
  closest_ = std::min(closest_, most);
  before_ = newest_->before;
  first_ = newest_ = reading;
}

bool CounterPeriod::confirms(double known) const { return closest_ < kLonger * known; }

std::optional<double> CounterPeriod::longer_than(double known) const {
  if (unchanged_ < kClearlyLonger * known || closest_ < kClearlyLonger * known) {
    return std::nullopt;
  }
  const double most = std::min(closest_, unchanged_at_most_);
  if (most < kLonger * unchanged_) return 0.5 * (std::min(unchanged_, most) + most);
  for (const double usual : kUsualPeriods) {
    if (usual >= 0.97 * unchanged_ && usual <= most) return usual;
  }
  return std::nullopt;
}

model::Sensor as_observed(model::Sensor sensor, std::span<const model::PowerReading> readings) {
  if (sensor.kind != model::SensorKind::kPowerInstant) return sensor;
  const auto period = period_of(readings);
  const double known = sensor.traits.refresh ? seconds(*sensor.traits.refresh) : 0.0;
  if (period && *period > kLonger * known && *period <= kLongest) {
    sensor.traits.refresh = duration_of(*period);
  }
  return sensor;
}

}  // namespace jouleprof::analysis
