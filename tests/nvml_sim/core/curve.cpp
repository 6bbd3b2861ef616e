#include "nvml_sim/core/curve.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace jouleprof::nvml_sim {
namespace {

double never(double) { return kForever; }

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

Curve ramp(double from, double to, double duration) {
  const double slope = (to - from) / duration;
  const auto watts_near = [=](double t, double inside) {
    return inside < 0 ? from : inside < duration ? from + slope * t : to;
  };
  const auto joules_until = [=](double t) {
    const double within = std::clamp(t, 0.0, duration);
    return from * std::min(t, 0.0) + (from + slope / 2 * within) * within +
           to * std::max(t - duration, 0.0);
  };
  return {watts_near,
          [=](double begin, double end) { return joules_until(end) - joules_until(begin); },
          [=](double t) { return t < 0          ? 0
                                 : t < duration ? duration
                                                : kForever; },
          std::min(from, to), std::max(from, to)};
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
