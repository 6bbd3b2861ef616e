// A quantity that never decreases, such as the CPU time of a process.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace jouleprof::analysis {

// Known at some times, and interpolated between them.
class Growing {
 public:
  // Times in order. After a decrease the value counts on from there; the total never decreases.
  void add(HostTime at, double value) {
    if (!points_.empty()) {
      if (at < points_.back().at) return;
      total_ += std::max(value - last_, 0.0);
      if (at == points_.back().at) {
        points_.back().total = total_;
        last_ = value;
        return;
      }
    }
    last_ = value;
    points_.push_back({at, total_});
  }
  bool empty() const { return points_.empty(); }
  HostTime first() const { return points_.front().at; }
  HostTime last() const { return points_.back().at; }
  // Constant before the first and after the last point.
  double at(HostTime t) const {
    const auto next = std::upper_bound(points_.begin(), points_.end(), t,
                                       [](HostTime x, const Point& p) { return x < p.at; });
    if (next == points_.begin()) return next->total;
    const Point& a = *std::prev(next);
    if (next == points_.end()) return a.total;
    return a.total + (next->total - a.total) * (seconds(t - a.at) / seconds(next->at - a.at));
  }
  void forget_before(HostTime t) {
    const auto kept = std::partition_point(points_.begin(), points_.end(),
                                           [t](const Point& p) { return p.at < t; });
    if (kept - points_.begin() > 1) points_.erase(points_.begin(), std::prev(kept));
  }
  // The mean growth per second over [a, b]; absent where less than half of it is known.
  std::optional<double> rate(HostTime a, HostTime b) const {
    if (empty() || b <= a) return std::nullopt;
    const HostTime from = std::max(a, first()), to = std::min(b, last());
    if (2 * (to - from) < b - a) return std::nullopt;
    return (at(to) - at(from)) / seconds(to - from);
  }

 private:
  struct Point {
    HostTime at;
    double total;
  };
  std::vector<Point> points_;
  double total_ = 0;
  double last_ = 0;
};

}  // namespace jouleprof::analysis
