// Power over time in closed form.
//
// Times are seconds since the scenario's start (negative before it), powers watts, energies joules.
// A curve is a pure function of time, so every process computes the same values. Thread-safe.
#pragma once

#include <functional>
#include <limits>
#include <vector>

namespace jouleprof::nvml_sim {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

struct Curve {
  // The formula that holds at `inside`, evaluated at `t`. Between two breaks a curve is smooth, and
  // this gives its value at both ends of the interval around `inside`.
  std::function<double(double t, double inside)> watts_near;
  // The exact integral from `begin` to `end`, with begin <= end.
  std::function<double(double begin, double end)> joules;
  // The first time after `t` at which the formula changes; kForever when there is none.
  std::function<double(double t)> next_break;
  // Bounds of the power over all time; the curve need not reach them.
  double lowest = 0;
  double highest = 0;

  // Power at `t`; at a jump, the power after it.
  double watts(double t) const { return watts_near(t, t); }
};

Curve constant(double watts);

// `high` for the first duty * period of each period, then `low`; a period begins at `phase`.
// 0 < period, 0 <= duty <= 1.
Curve square(double low, double high, double period, double duty, double phase);

// From `from` at 0 s to `to` at `duration`; holds before and after.
Curve ramp(double from, double to, double duration);

// `part` from `begin` to `end`, 0 W outside.
Curve between(Curve part, double begin, double end);

Curve sum(std::vector<Curve> parts);

}  // namespace jouleprof::nvml_sim
