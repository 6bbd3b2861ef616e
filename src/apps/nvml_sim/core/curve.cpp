#include "apps/nvml_sim/core/curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace jouleprof::nvml_sim {
namespace {

class Constant final : public Curve {
 public:
  explicit Constant(double watts) : watts_(watts) {}
  double watts_near(double, double) const override { return watts_; }
  double joules(double begin, double end) const override { return watts_ * (end - begin); }
  double next_break(double) const override { return kForever; }
  double lowest() const override { return watts_; }
  double highest() const override { return watts_; }

 private:
  double watts_;
};

class Square final : public Curve {
 public:
  Square(double low, double high, double period, double duty, double phase)
      : low_(low), high_(high), period_(period), on_(duty * period), phase_(phase) {}

  double watts_near(double, double inside) const override {
    const double x = inside - phase_;
    return x - std::floor(x / period_) * period_ < on_ ? high_ : low_;
  }
  double joules(double begin, double end) const override { return until(end) - until(begin); }
  double next_break(double t) const override {
    const double k = std::floor((t - phase_) / period_);
    for (const double n : {k, k + 1}) {
      for (const double edge : {phase_ + n * period_, phase_ + n * period_ + on_}) {
        if (edge > t) return edge;
      }
    }
    return phase_ + (k + 2) * period_;
  }
  double lowest() const override { return std::min(low_, high_); }
  double highest() const override { return std::max(low_, high_); }

 private:
  double until(double t) const {
    const double x = t - phase_;
    const double k = std::floor(x / period_);
    const double rest = x - k * period_;
    const double on = k * on_ + std::min(rest, on_);
    return high_ * on + low_ * (x - on);
  }

  double low_, high_, period_, on_, phase_;
};

class Sine final : public Curve {
 public:
  Sine(double mean, double amplitude, double period, double phase)
      : mean_(mean), amplitude_(amplitude), period_(period), phase_(phase) {}

  double watts_near(double t, double) const override {
    return mean_ + amplitude_ * std::sin(turns(t));
  }
  double joules(double begin, double end) const override {
    const double scale = amplitude_ * period_ / (2 * std::numbers::pi);
    return mean_ * (end - begin) + scale * (std::cos(turns(begin)) - std::cos(turns(end)));
  }
  // The formula never changes; stretches this short have at most one crossing with a limit.
  double next_break(double t) const override {
    const double step = period_ / 16;
    return phase_ + (std::floor((t - phase_) / step) + 1) * step;
  }
  double lowest() const override { return mean_ - std::abs(amplitude_); }
  double highest() const override { return mean_ + std::abs(amplitude_); }

 private:
  double turns(double t) const { return 2 * std::numbers::pi * (t - phase_) / period_; }

  double mean_, amplitude_, period_, phase_;
};

class Piecewise final : public Curve {
 public:
  Piecewise(Corners corners, bool repeat) : corners_(std::move(corners)) {
    const auto power = [](const auto& a, const auto& b) { return a.second < b.second; };
    std::tie(lowest_, highest_) =
        std::pair(std::min_element(corners_.begin(), corners_.end(), power)->second,
                  std::max_element(corners_.begin(), corners_.end(), power)->second);
    sums_.push_back(0);
    for (std::size_t i = 1; i < corners_.size(); ++i) {
      const auto& [t0, w0] = corners_[i - 1];
      const auto& [t1, w1] = corners_[i];
      sums_.push_back(sums_.back() + (w0 + w1) / 2 * (t1 - t0));
    }
    if (repeat) period_ = corners_.back().first - corners_.front().first;
  }

  double watts_near(double t, double inside) const override {
    const double shift = rounds(inside) * period_;
    t -= shift;
    const auto after = corner_after(inside - shift);
    if (after == corners_.begin()) return corners_.front().second;
    if (after == corners_.end()) return corners_.back().second;
    return on_line(*std::prev(after), *after, t);
  }
  double joules(double begin, double end) const override { return until(end) - until(begin); }
  double next_break(double t) const override {
    const double n = rounds(t);
    const auto after = corner_after(t - n * period_);
    if (after != corners_.end() && after->first + n * period_ > t) {
      return after->first + n * period_;
    }
    return period_ > 0 ? corners_.front().first + (n + 1) * period_ : kForever;
  }
  double lowest() const override { return lowest_; }
  double highest() const override { return highest_; }

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
  // The integral since the first corner.
  double until(double t) const {
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

  Corners corners_;
  std::vector<double> sums_;  // the integral up to each corner
  double period_ = 0;         // 0: no repetition
  double lowest_ = 0;
  double highest_ = 0;
};

class Between final : public Curve {
 public:
  Between(CurvePtr part, double begin, double end)
      : part_(std::move(part)), begin_(begin), end_(end) {}

  double watts_near(double t, double inside) const override {
    return inside >= begin_ && inside < end_ ? part_->watts_near(t, inside) : 0;
  }
  double joules(double begin, double end) const override {
    begin = std::max(begin, begin_);
    end = std::min(end, end_);
    return begin < end ? part_->joules(begin, end) : 0;
  }
  double next_break(double t) const override {
    if (t < begin_) return begin_;
    return t < end_ ? std::min(end_, part_->next_break(t)) : kForever;
  }
  double lowest() const override { return std::min(0.0, part_->lowest()); }
  double highest() const override { return std::max(0.0, part_->highest()); }

 private:
  CurvePtr part_;
  double begin_, end_;
};

class Sum final : public Curve {
 public:
  explicit Sum(std::vector<CurvePtr> parts) : parts_(std::move(parts)) {}

  double watts_near(double t, double inside) const override {
    return total([=](const Curve& c) { return c.watts_near(t, inside); });
  }
  double joules(double begin, double end) const override {
    return total([=](const Curve& c) { return c.joules(begin, end); });
  }
  double next_break(double t) const override {
    double next = kForever;
    for (const auto& part : parts_) next = std::min(next, part->next_break(t));
    return next;
  }
  double lowest() const override {
    return total([](const Curve& c) { return c.lowest(); });
  }
  double highest() const override {
    return total([](const Curve& c) { return c.highest(); });
  }

 private:
  template <typename F>
  double total(F of) const {
    double all = 0;
    for (const auto& part : parts_) all += of(*part);
    return all;
  }

  std::vector<CurvePtr> parts_;
};

}  // namespace

CurvePtr constant(double watts) { return std::make_shared<Constant>(watts); }
CurvePtr square(double low, double high, double period, double duty, double phase) {
  return std::make_shared<Square>(low, high, period, duty, phase);
}
CurvePtr sine(double mean, double amplitude, double period, double phase) {
  return std::make_shared<Sine>(mean, amplitude, period, phase);
}
CurvePtr piecewise(Corners corners, bool repeat) {
  return std::make_shared<Piecewise>(std::move(corners), repeat);
}
CurvePtr between(CurvePtr part, double begin, double end) {
  return std::make_shared<Between>(std::move(part), begin, end);
}
CurvePtr sum(std::vector<CurvePtr> parts) {
  return parts.size() == 1 ? parts.front() : std::make_shared<Sum>(std::move(parts));
}

}  // namespace jouleprof::nvml_sim
