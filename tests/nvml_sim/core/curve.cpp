#include "nvml_sim/core/curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numbers>

namespace jouleprof::nvml_sim {
namespace {

double never(double) { return kForever; }

// A piecewise linear curve with the integral up to each corner.
class Lines {
 public:
  Lines(Corners corners, bool repeat) : corners_(std::move(corners)) {
    for (std::size_t i = 1; i < corners_.size(); ++i) {
      const auto& [t0, w0] = corners_[i - 1];
      const auto& [t1, w1] = corners_[i];
      sums_.push_back(sums_.back() + (w0 + w1) / 2 * (t1 - t0));
    }
    if (repeat) period_ = corners_.back().first - corners_.front().first;
  }

  double watts_near(double t, double inside) const {
    const double shift = rounds(inside) * period_;
    const auto after = corner_after(inside - shift);
    if (after == corners_.begin()) return corners_.front().second;
    if (after == corners_.end()) return corners_.back().second;
    return on_line(*std::prev(after), *after, t - shift);
  }
  double next_break(double t) const {
    const double n = rounds(t);
    const auto after = corner_after(t - n * period_);
    if (after != corners_.end() && after->first + n * period_ > t) {
      return after->first + n * period_;
    }
    return period_ > 0 ? corners_.front().first + (n + 1) * period_ : kForever;
  }
  // The integral since the first corner.
  double joules_until(double t) const {
    const double n = rounds(t);
    t -= n * period_;
    const auto after = corner_after(t);
    const double whole = n * sums_.back();
    if (after == corners_.begin()) {
      return whole + corners_.front().second * (t - corners_.front().first);
    }
    const auto& before = *std::prev(after);
    const double sum = sums_[static_cast<std::size_t>(std::prev(after) - corners_.begin())];
    const double now = after == corners_.end() ? before.second : on_line(before, *after, t);
    return whole + sum + (before.second + now) / 2 * (t - before.first);
  }

 private:
  using Corner = Corners::value_type;

  static double on_line(const Corner& a, const Corner& b, double t) {
    return a.second + (b.second - a.second) * (t - a.first) / (b.first - a.first);
  }
  double rounds(double t) const {
    return period_ > 0 ? std::floor((t - corners_.front().first) / period_) : 0;
  }
  Corners::const_iterator corner_after(double t) const {
    return std::upper_bound(corners_.begin(), corners_.end(), t,
                            [](double at, const Corner& c) { return at < c.first; });
  }

  Corners corners_;
  std::vector<double> sums_{0};
  double period_ = 0;  // 0: not periodic
};

}  // namespace

Curve constant(double watts) {
  return {[=](double, double) { return watts; },
          [=](double begin, double end) { return watts * (end - begin); }, never, watts, watts};
}

Curve square(double low, double high, double period, double duty, double phase) {
  const double on = duty * period;
  const auto joules_until = [=](double t) {
    const double x = t - phase;
    const double k = std::floor(x / period);
    const double seconds_high = k * on + std::min(x - k * period, on);
    return high * seconds_high + low * (x - seconds_high);
  };
  const auto next_break = [=](double t) {
    const double k = std::floor((t - phase) / period);
    for (const double n : {k, k + 1}) {
      for (const double edge : {phase + n * period, phase + n * period + on}) {
        if (edge > t) return edge;
      }
    }
    return phase + (k + 2) * period;
  };
  return {[=](double, double inside) {
            const double x = inside - phase;
            return x - std::floor(x / period) * period < on ? high : low;
          },
          [=](double begin, double end) { return joules_until(end) - joules_until(begin); },
          next_break, std::min(low, high), std::max(low, high)};
}

Curve sine(double mean, double amplitude, double period, double phase) {
  const auto angle = [=](double t) { return 2 * std::numbers::pi * (t - phase) / period; };
  const double scale = amplitude * period / (2 * std::numbers::pi);
  return {[=](double t, double) { return mean + amplitude * std::sin(angle(t)); },
          [=](double begin, double end) {
            return mean * (end - begin) + scale * (std::cos(angle(begin)) - std::cos(angle(end)));
          },
          // The formula never changes; but intervals this short cross a limit at most once.
          [=](double t) {
            const double step = period / 16;
            return phase + (std::floor((t - phase) / step) + 1) * step;
          },
          mean - std::abs(amplitude), mean + std::abs(amplitude)};
}

Curve piecewise(Corners corners, bool repeat) {
  const auto [low, high] =
      std::minmax_element(corners.begin(), corners.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const double lowest = low->second;
  const double highest = high->second;
  const auto lines = std::make_shared<const Lines>(std::move(corners), repeat);
  return {[=](double t, double inside) { return lines->watts_near(t, inside); },
          [=](double begin, double end) {
            return lines->joules_until(end) - lines->joules_until(begin);
          },
          [=](double t) { return lines->next_break(t); }, lowest, highest};
}

Curve between(Curve part, double begin, double end) {
  const auto curve = std::make_shared<const Curve>(std::move(part));
  return {[=](double t, double inside) {
            return inside >= begin && inside < end ? curve->watts_near(t, inside) : 0;
          },
          [=](double from, double to) {
            from = std::max(from, begin);
            to = std::min(to, end);
            return from < to ? curve->joules(from, to) : 0;
          },
          [=](double t) {
            if (t < begin) return begin;
            return t < end ? std::min(end, curve->next_break(t)) : kForever;
          },
          std::min(0.0, curve->lowest), std::max(0.0, curve->highest)};
}

Curve sum(std::vector<Curve> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  const auto all = std::make_shared<const std::vector<Curve>>(std::move(parts));
  const auto total = [all](auto of) {
    double value = 0;
    for (const Curve& part : *all) value += of(part);
    return value;
  };
  return {[=](double t, double inside) {
            return total([=](const Curve& c) { return c.watts_near(t, inside); });
          },
          [=](double begin, double end) {
            return total([=](const Curve& c) { return c.joules(begin, end); });
          },
          [=](double t) {
            double next = kForever;
            for (const Curve& part : *all) next = std::min(next, part.next_break(t));
            return next;
          },
          total([](const Curve& c) { return c.lowest; }),
          total([](const Curve& c) { return c.highest; })};
}

}  // namespace jouleprof::nvml_sim
