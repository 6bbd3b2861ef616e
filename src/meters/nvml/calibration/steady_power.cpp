#include "meters/nvml/calibration/steady_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace jouleprof::meters::nvml {
namespace {

constexpr Duration kBin = std::chrono::milliseconds{100};
constexpr std::size_t kFewest = 10;  // bins
constexpr double kTwoSided = 1.96;   // standard deviations

struct Level {
  double mean = 0;
  double deviation = 0;  // standard deviation

  double error(std::size_t count) const {
    return kTwoSided * deviation / std::sqrt(static_cast<double>(count));
  }
};

Level level_of(std::span<const double> watts) {
  Level level;
  for (const double w : watts) level.mean += w / static_cast<double>(watts.size());
  double squares = 0;
  for (const double w : watts) squares += (w - level.mean) * (w - level.mean);
  level.deviation = std::sqrt(squares / static_cast<double>(watts.size() - 1));
  return level;
}

double at_least(double watts, double ratio, double of) { return std::max(watts, ratio * of); }

std::vector<double> bins_of(const std::vector<model::PowerReading>& readings, HostTime begin) {
  struct Bin {
    double sum = 0;
    int count = 0;
  };
  std::map<std::int64_t, Bin> bins;
  for (const auto& r : readings) {
    if (r.at < begin) continue;
    Bin& bin = bins[(r.at - begin) / kBin];
    bin.sum += r.power.watts();
    ++bin.count;
  }
  std::vector<double> means;
  for (const auto& [number, bin] : bins) means.push_back(bin.sum / bin.count);
  return means;
}

}  // namespace

Result<SteadyPower> steady_power(const std::vector<model::PowerReading>& readings, HostTime begin) {
  const auto bins = bins_of(readings, begin);
  if (bins.size() < kFewest) {
    return fail(Errc::kUnavailable, fmt::format("there are readings of {:.1f} s only",
                                                seconds(kBin) * static_cast<double>(bins.size())));
  }
  const std::span all(bins);
  const std::size_t half = bins.size() / 2;
  const Level first = level_of(all.first(half));
  const Level last = level_of(all.last(half));
  const double errors = std::hypot(first.error(half), last.error(half));
  if (std::abs(last.mean - first.mean) > at_least(0.5, 0.005, last.mean) + errors) {
    return fail(Errc::kUnavailable,
                fmt::format("its power was still {} ({:.1f} to {:.1f} W)",
                            last.mean < first.mean ? "falling" : "rising", first.mean, last.mean));
  }
  const auto [low, high] = std::minmax_element(bins.begin(), bins.end());
  const Level level = level_of(all);
  if (*high - *low > at_least(3, 0.03, level.mean)) {
    return fail(Errc::kUnavailable,
                fmt::format("its power varied between {:.1f} and {:.1f} W", *low, *high));
  }
  const double spread = std::max(kTwoSided * level.deviation, at_least(1, 0.01, level.mean));
  return SteadyPower{Power::watts(level.mean), Power::watts(spread)};
}

}  // namespace jouleprof::meters::nvml
