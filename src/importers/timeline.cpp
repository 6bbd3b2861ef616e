#include "importers/timeline.h"

#include <algorithm>

namespace jouleprof::importers {
namespace {

constexpr Duration kShortestPause = std::chrono::seconds{5};
constexpr Duration kLongestStep = std::chrono::hours{24};
constexpr int kPauseFactor = 10;
// Far from the end of a count of nanoseconds, whatever the file says.
constexpr HostTime kLatest{std::chrono::hours{24 * 365 * 100}};

}  // namespace

Duration usual_distance(std::span<const Stamp> stamps) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    const Duration distance = stamps[i].at - stamps[i - 1].at;
    if (!stamps[i].starts_segment && distance > Duration::zero()) distances.push_back(distance);
  }
  if (distances.empty()) return Duration::zero();
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

Layout lay_out(std::span<const Stamp> stamps, Duration seam) {
  Layout layout;
  layout.times.reserve(stamps.size());
  const Duration usual = std::min(usual_distance(stamps), kLongestStep / kPauseFactor);
  const Duration pause = std::max(kShortestPause, kPauseFactor * usual);
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const Duration at = stamps[i].at;
    if (i == 0) {
      layout.times.emplace_back();
      layout.segments.push_back({HostTime{}, HostTime{}, at, at});
      continue;
    }
    const Duration distance = at - stamps[i - 1].at;
    const HostTime before = layout.times.back();
    if (distance < Duration::zero()) ++layout.backward_steps;
    if (stamps[i].starts_segment || distance < Duration::zero() || distance > pause ||
        before + distance > kLatest) {
      layout.cut += std::clamp(distance, Duration::zero(), Duration::max() - layout.cut);
      const HostTime begin = before + seam;
      layout.times.push_back(begin);
      layout.segments.push_back({begin, begin, at, at});
    } else {
      layout.times.push_back(before + std::max(distance, Duration{1}));
      layout.segments.back().end = layout.times.back();
      layout.segments.back().stamp_end = at;
    }
  }
  return layout;
}

}  // namespace jouleprof::importers
