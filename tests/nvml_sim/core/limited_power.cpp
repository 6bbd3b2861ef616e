#include "nvml_sim/core/limited_power.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::nvml_sim {
namespace {

// The joules of min(demand, limit) over an interval without a break.
double capped_interval(const Curve& demand, double limit, double begin, double end) {
  const double inside = begin + (end - begin) / 2;
  const auto excess = [&](double t) { return demand.watts_near(t, inside) - limit; };
  double over_at_begin = excess(begin);
  const double over_at_end = excess(end);
  if (over_at_begin <= 0 && over_at_end <= 0) return demand.joules(begin, end);
  if (over_at_begin >= 0 && over_at_end >= 0) return limit * (end - begin);
  // One crossing: first guessed on the straight line (exact for linear demand), then bisected.
  double low = begin;
  double high = end;
  double at = begin + (end - begin) * over_at_begin / (over_at_begin - over_at_end);
  for (int i = 0; i < 100 && low < high; ++i) {
    const double over = excess(at);
    if (std::abs(over) <= 1e-12 * limit) break;
    ((over > 0) == (over_at_begin > 0) ? low : high) = at;
    at = low + (high - low) / 2;
    if (at <= low || at >= high) break;
  }
  return over_at_begin > 0 ? limit * (at - begin) + demand.joules(at, end)
                           : demand.joules(begin, at) + limit * (end - at);
}

}  // namespace

LimitedPower::LimitedPower(Curve demand, double limit_watts, double idle_watts)
    : demand_(std::move(demand)),
      first_limit_(limit_watts),
      idle_(idle_watts),
      settings_{{-kForever, limit_watts, 1}} {}

void LimitedPower::change(double t, void (*apply)(Setting&, double), double value) {
  const std::lock_guard lock(mutex_);
  is_changed_ = true;
  Setting next = settings_.back();
  next.from = std::max(t, next.from);
  apply(next, value);
  settings_.push_back(next);
  const double known = std::max(0.0, std::floor(next.from));
  if (known + 1 < static_cast<double>(sums_.size())) {
    sums_.resize(static_cast<std::size_t>(known) + 1);
  }
}

void LimitedPower::set_limit(double t, double limit_watts) {
  change(
      t, [](Setting& setting, double limit) { setting.limit = limit; }, limit_watts);
}

void LimitedPower::set_share(double t, double share) {
  change(
      t, [](Setting& setting, double value) { setting.share = value; }, share);
}

LimitedPower::Setting LimitedPower::setting(double t) const {
  const std::lock_guard lock(mutex_);
  const auto after = std::upper_bound(settings_.begin(), settings_.end(), t,
                                      [](double at, const Setting& s) { return at < s.from; });
  return *std::prev(after);
}

double LimitedPower::demand(double t) const {
  return idle_ + share(t) * (demand_.watts(t) - idle_);
}

double LimitedPower::watts(double t) const { return std::min(demand(t), limit(t)); }

double LimitedPower::capped(double limit, double begin, double end) const {
  if (demand_.highest <= limit) return demand_.joules(begin, end);
  if (demand_.lowest >= limit) return limit * (end - begin);
  double joules = 0;
  while (begin < end) {
    double next = std::min(end, demand_.next_break(begin));
    if (next <= begin) next = std::nextafter(begin, kForever);  // a break rounded onto `begin`
    joules += capped_interval(demand_, limit, begin, next);
    begin = next;
  }
  return joules;
}

double LimitedPower::integrate(double begin, double end) const {
  double joules = 0;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    const Setting& now = settings_[i];
    const double from = std::max(begin, now.from);
    const double to = std::min(end, i + 1 < settings_.size() ? settings_[i + 1].from : kForever);
    if (from >= to) continue;
    // min(idle + share x (demand - idle), limit) is a share of the demand, capped higher.
    const double cap = now.share == 1 ? now.limit : idle_ + (now.limit - idle_) / now.share;
    joules += now.share * capped(cap, from, to) + (1 - now.share) * idle_ * (to - from);
  }
  return joules;
}

double LimitedPower::since_start(double t) const {
  const auto whole = static_cast<std::size_t>(t);
  while (sums_.size() <= whole) {
    const auto second = static_cast<double>(sums_.size());
    sums_.push_back(sums_.back() + integrate(second - 1, second));
  }
  return sums_[whole] + integrate(static_cast<double>(whole), t);
}

double LimitedPower::joules(double begin, double end) const {
  constexpr double kShort = 5;
  // The usual case by far, and a read of a ring asks a hundred times: no lock.
  const bool is_simple = demand_.highest <= first_limit_ || demand_.lowest >= first_limit_;
  if (is_simple && !is_changed_) return capped(first_limit_, begin, end);
  const std::lock_guard lock(mutex_);
  if (end - begin < kShort) return integrate(begin, end);
  const double before_start = begin < 0 ? integrate(begin, std::min(0.0, end)) : 0;
  if (end <= 0) return before_start;
  return before_start + since_start(end) - since_start(std::max(0.0, begin));
}

}  // namespace jouleprof::nvml_sim
