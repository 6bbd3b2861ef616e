#include "analysis/timeline/sensors/refresh_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "analysis/timeline/sensors/time_base.h"

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kLeastUpdates = 10;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> intervals_of(const std::vector<double>& times) {
  std::vector<double> intervals;
  for (std::size_t i = 1; i < times.size(); ++i) intervals.push_back(times[i] - times[i - 1]);
  return intervals;
}

// The period of times on a lattice with independent errors, by linear regression on their lattice
// index; absent where they lie on none.
std::optional<FittedDuration> lattice_period(const std::vector<double>& times) {
  const double interval = median(intervals_of(times));
  if (!(interval > 0)) return std::nullopt;
  const double n = static_cast<double>(times.size());
  double sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0, sum_tt = 0, k = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (i > 0) k += std::round((times[i] - times[i - 1]) / interval);
    const double t = times[i] - times.front();
    sum_k += k;
    sum_t += t;
    sum_kk += k * k;
    sum_kt += k * t;
    sum_tt += t * t;
  }
  const double kk = sum_kk - sum_k * sum_k / n;
  const double kt = sum_kt - sum_k * sum_t / n;
  if (!(kk > 0)) return std::nullopt;
  const double period = kt / kk;
  const double variance = std::max(sum_tt - sum_t * sum_t / n - period * kt, 0.0) / (n - 2);
  if (std::sqrt(variance) > interval / 4) return std::nullopt;
  return FittedDuration::of(period, 1.96 * std::sqrt(variance / kk));
}

}  // namespace

FittedDuration median_interval(const std::vector<double>& times) {
  std::vector<double> intervals = intervals_of(times);
  const double middle = median(intervals);
  for (double& interval : intervals) interval = std::abs(interval - middle);
  // The median's standard error from the median absolute deviation, for a normal distribution.
  const double sigma = 1.48 * median(intervals);
  return FittedDuration::of(middle,
                            1.96 * 1.25 * sigma / std::sqrt(static_cast<double>(intervals.size())));
}

Result<FittedDuration> fit_counter_refresh(std::span<const model::CounterReading> reads) {
  struct Update {
    double first, last;  // the reads before and after it
    double span() const { return last - first; }
  };
  std::vector<Update> updates;
  const TimeBase time{reads.empty() ? HostTime{} : reads.front().before};
  for (std::size_t i = 1; i < reads.size(); ++i) {
    if (reads[i].total == reads[i - 1].total) continue;
    updates.push_back({time.seconds_of(reads[i - 1].before), time.seconds_of(reads[i].after)});
  }
  if (updates.size() < kLeastUpdates) {
    return fail(
        Errc::kUnavailable,
        fmt::format(
            "the energy counter changed {} times in {} reads; at least {} changes are needed",
            updates.size(), reads.size(), kLeastUpdates));
  }
  if (3 * updates.size() > reads.size()) {
    return fail(
        Errc::kUnavailable,
        fmt::format(
            "{} of {} reads of the energy counter returned a new value: it is updated too fast "
            "to determine its period",
            updates.size(), reads.size()));
  }
  // A slow read leaves the time of the update uncertain.
  std::vector<double> spans;
  for (const Update& u : updates) spans.push_back(u.span());
  const double usual = median(spans);
  std::vector<double> times;
  for (const Update& u : updates) {
    if (u.span() <= 1.5 * usual) times.push_back(0.5 * (u.first + u.last));
  }
  const auto period = lattice_period(times);
  if (!period) {
    return fail(Errc::kUnavailable, "the energy counter is not updated at a fixed period");
  }
  return *period;
}

}  // namespace jouleprof::analysis
