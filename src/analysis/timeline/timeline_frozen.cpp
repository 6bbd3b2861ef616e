// How an EnergyTimeline finds that its counter stands still, or is renewed more rarely than known.
#include <algorithm>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// In seconds.
constexpr double kFrozen =
    1;  // while samples show power, of a counter whose period is not confirmed
constexpr double kFrozenLeast = 0.1;
constexpr double kFrozenAlone = 2;    // without samples
constexpr double kLeastWatts = 0.05;  // of a domain whose counter is not frozen

}  // namespace

// Shorter periods than those of a lattice of updates need no correction.
void EnergyTimeline::learn_period(const model::CounterReading& reading) {
  auto& traits = sensors_.counter->traits;
  if (!traits.refresh || seconds(*traits.refresh) < 0.02) return;
  counter_period_.see(reading);
  const auto longer = counter_period_.longer_than(seconds(*traits.refresh));
  if (!longer) return;
  traits.refresh = duration_of(*longer);
  phase_.reset();
  tail_phase_.reset();
}

// A counter that is constant while power is drawn is frozen: its readings from its last change to
// the next one are not used.
void EnergyTimeline::drop_frozen(std::size_t first_new) {
  for (std::size_t i = first_new; i < points_.size(); ++i) {
    points_[i].segment += frozen_segments_;
    const bool unchanged = i > 0 && points_[i - 1].energy == points_[i].energy &&
                           points_[i - 1].segment == points_[i].segment;
    if (!unchanged) {
      if (frozen_ && i > 0 && !catches_up(points_[i - 1], points_[i])) {
        ++frozen_segments_;
        ++points_[i].segment;
      }
      unchanged_from_ = i;
      frozen_ = false;
      continue;
    }
    const std::size_t first = unchanged_from_;
    if (!frozen_ && !is_frozen(points_[first], points_[i])) continue;
    if (!frozen_) {
      notes_.push_back(
          {points_[first].after,
           has_samples()
               ? "the energy counter did not change while power was drawn; it is not used there"
               : "the energy counter did not change for seconds; the energy there is unknown"});
    }
    if (!frozen_) split_frozen(first);
    frozen_ = true;
    points_.resize(first + 1);
    return;
  }
}

// The counter may have stopped at any time between its last two changes that were read: where the
// increment between them is short of the samples, it is not used.
void EnergyTimeline::split_frozen(std::size_t first) {
  if (first == 0 || !has_samples()) return;
  if (points_[first].segment != points_[first - 1].segment) return;
  const double from = time_->seconds_of(points_[first - 1].after);
  const double to = time_->seconds_of(points_[first].after);
  const double expected = shape_->integral(from, to);
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  const double update = expected / std::max(to - from, 1e-3) * refresh;
  const double noise = 3 * std::sqrt(shape_->missed_variance(from, to)) + hidden_joules(from, to);
  const double counted = (points_[first].energy - points_[first - 1].energy).joules();
  if (counted > expected * (1 - gain_error()) - noise - kErrors.frozen_periods * update) return;
  ++frozen_segments_;
  ++points_[first].segment;
}

bool EnergyTimeline::is_frozen(const CounterPoint& first, const CounterPoint& last) const {
  const auto& traits = sensors_.counter->traits;
  const double still = seconds(last.before - first.after);
  const double quantum = traits.quantum.joules();
  if (!has_samples()) {
    const double refresh = traits.refresh ? seconds(*traits.refresh) : 1.0;
    return still >= std::max({kFrozenAlone, 10 * refresh, quantum / kLeastWatts});
  }
  const double refresh = traits.refresh ? seconds(*traits.refresh) : 0.3;
  // A value is seen late, and the one after it, too.
  const double longest = (kErrors.frozen_periods + kErrors.latest_visible / 0.1) * refresh;
  const bool confirmed = traits.refresh && counter_period_.confirms(refresh);
  if (still < (confirmed ? std::max(kFrozenLeast, longest) : std::max(kFrozen, 10 * refresh))) {
    return false;
  }
  const double from = time_->seconds_of(first.after);
  return shape_->integral(from, from + still) >= std::max(1.0 * still, 20 * quantum);
}

// Whether a counter that was frozen now includes the energy of that time.
bool EnergyTimeline::catches_up(const CounterPoint& first, const CounterPoint& last) const {
  if (!has_samples()) return false;
  const double from = time_->seconds_of(first.after);
  const double to = time_->seconds_of(last.after);
  const double expected = shape_->integral(from, to);
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  const double update = expected / std::max(to - from, 1e-3) * refresh;
  return std::abs((last.energy - first.energy).joules() - expected) <
         (0.05 + gain_error()) * expected + update;
}

}  // namespace jouleprof::analysis
