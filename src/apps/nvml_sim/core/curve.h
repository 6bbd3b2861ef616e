// Power over time in closed form.
//
// Times are seconds since the scenario's start (negative before it), powers watts, energies joules.
// A curve is a pure function of time: any process that asks gets the same answer, and nothing has
// to run between two questions. Thread-safe: curves don't change once made.
#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace jouleprof::nvml_sim {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

class Curve {
 public:
  virtual ~Curve() = default;
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;

  // Power at `t`; where the curve jumps, what follows the jump.
  double watts(double t) const { return watts_near(t, t); }
  // The formula that holds at `inside`, evaluated at `t`: between two breaks a curve is smooth, and
  // this gives its value at both ends of the stretch around `inside`.
  virtual double watts_near(double t, double inside) const = 0;
  // The exact integral from `begin` to `end`, with begin <= end.
  virtual double joules(double begin, double end) const = 0;
  // The first time after `t` at which the formula changes; kForever when there is none.
  virtual double next_break(double t) const = 0;
  // Bounds of the power over all time; they need not be reached.
  virtual double lowest() const = 0;
  virtual double highest() const = 0;

 protected:
  Curve() = default;
};

using CurvePtr = std::shared_ptr<const Curve>;

// Corners of a piecewise linear curve: seconds, watts. Two corners at one time are a jump.
using Corners = std::vector<std::pair<double, double>>;

CurvePtr constant(double watts);

// `high` for the first duty * period of each period, then `low`; a period begins at `phase`.
// 0 < period, 0 <= duty <= 1.
CurvePtr square(double low, double high, double period, double duty, double phase);

// mean + amplitude * sin(2 pi (t - phase) / period). 0 < period.
CurvePtr sine(double mean, double amplitude, double period, double phase);

// Straight lines between corners whose times do not fall, and at least one corner. Outside of them
// the first and last power hold, or, with `repeat`, the whole starts again.
CurvePtr piecewise(Corners corners, bool repeat);

// `part` from `begin` to `end`, nothing outside.
CurvePtr between(CurvePtr part, double begin, double end);

CurvePtr sum(std::vector<CurvePtr> parts);

}  // namespace jouleprof::nvml_sim
