#include "meters/nvml/probes/edge_tracker.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace jouleprof::meters::nvml {
namespace {

// The check of the period needs updates in a row, seen within this time.
constexpr Duration kCheckSpan = std::chrono::seconds(2);
constexpr int kShortestRow = 3;

HostTime middle(HostTime a, HostTime b) { return a + (b - a) / 2; }

}  // namespace

void EdgeTracker::saw(HostTime before, HostTime after) {
  if ((after - before) * 10 > refresh_ * 6) {
    // Updates may have been missed in here: they must not count as one long period.
    if (seen_ < kShortestRow) seen_ = 0;
    row_ended_ = seen_ > 0;
    return;
  }
  if (seen_ == 0 || (!row_ended_ && after - first_seen_ < kCheckSpan)) {
    if (seen_++ == 0) first_seen_ = middle(before, after);
    last_seen_ = middle(before, after);
  }
  if (low_) {
    // The known bracket, moved on by whole periods to the new one.
    const Duration gap = middle(before, after) - middle(*low_, high_);
    const auto periods = std::llround(seconds(gap) / seconds(refresh_));
    const HostTime low = *low_ + refresh_ * periods;
    const HostTime high = high_ + refresh_ * periods;
    if (std::max(low, before) < std::min(high, after)) {
      low_ = std::max(low, before);
      high_ = std::min(high, after);
      return;
    }
  }
  low_ = before;  // the first, or the phase has moved
  high_ = after;
}

void EdgeTracker::forget() {
  low_.reset();
  seen_ = 0;
  row_ended_ = false;
}

bool EdgeTracker::fits_period() const {
  if (seen_ < kShortestRow) return true;  // too few to object
  const double period = seconds(last_seen_ - first_seen_) / (seen_ - 1);
  return std::abs(period / seconds(refresh_) - 1) < 0.25;
}

std::optional<HostTime> EdgeTracker::next_after(HostTime t) const {
  if (!low_ || !fits_period()) return std::nullopt;
  Duration past = (t - middle(*low_, high_)) % refresh_;  // since the update at or before `t`
  if (past < Duration{}) past += refresh_;
  return t - past + refresh_;
}

}  // namespace jouleprof::meters::nvml
