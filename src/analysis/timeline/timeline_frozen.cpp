// How an EnergyTimeline finds that its counter stands still.
#include <algorithm>
#include <cmath>

#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// In seconds.
constexpr double kFrozen = 1;         // without a change of the counter, while samples show power
constexpr double kFrozenAlone = 2;    // without samples
constexpr double kLeastWatts = 0.05;  // of a domain whose counter is not frozen

}  // namespace

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
    frozen_ = true;
    points_.resize(first + 1);
    return;
  }
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
  if (still < std::max(kFrozen, 10 * refresh)) return false;
  const double from = time_->seconds_of(first.after);
  return shape_->integral(from, from + still) >= std::max(1.0 * still, 20 * quantum);
}

// Whether a counter that was frozen now includes the energy of that time.
bool EnergyTimeline::catches_up(const CounterPoint& first, const CounterPoint& last) const {
  if (!has_samples()) return false;
  const double expected =
      shape_->integral(time_->seconds_of(first.after), time_->seconds_of(last.after));
  return std::abs((last.energy - first.energy).joules() - expected) <
         (0.05 + gain_error()) * expected;
}

}  // namespace jouleprof::analysis
