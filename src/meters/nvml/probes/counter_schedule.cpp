#include "meters/nvml/probes/counter_schedule.h"

#include <algorithm>
#include <chrono>

namespace jouleprof::meters::nvml {

using namespace std::chrono_literals;

namespace {

constexpr Duration kLearn = 1s;
constexpr int kFollowEvery = 12;  // rare reads
constexpr int kFollowReads = 6;
constexpr Duration kFollowSpacing = 8ms;

}  // namespace

Duration CounterSchedule::period() const {
  return plan_.every_update ? plan_.refresh : plan_.rarely;
}

void CounterSchedule::set_pace(bool every_update, Duration rarely) {
  plan_.every_update = every_update;
  plan_.rarely = rarely;
}

HostTime CounterSchedule::next(HostTime before, HostTime after,
                               std::optional<HostTime> changed_since) {
  if (changed_since) edges_.saw(*changed_since, after);
  if (learning_) {
    if (before < plan_.first_burst) return plan_.first_burst;
    if (burst_end_ == HostTime{}) burst_end_ = before + kLearn;
    if (before + kDenseSpacing < burst_end_) return before + kDenseSpacing;
    learning_ = false;
    last_burst_ = after;
    return steady(after);
  }
  if (burst_left_ > 0) {
    if (--burst_left_ > 0) return before + burst_spacing_;
    last_burst_ = after;
    return steady(after);
  }
  if (after - last_burst_ >= kFollowEvery * plan_.rarely) return begin_burst(after);
  return steady(after);
}

HostTime CounterSchedule::begin_burst(HostTime now) {
  burst_left_ = kFollowReads;
  const Duration half = kFollowSpacing * (kFollowReads - 1) / 2;
  const auto edge = edges_.next_after(now + half);
  // Without a phase, spread over a whole period.
  burst_spacing_ = edge ? kFollowSpacing : plan_.refresh / (kFollowReads - 1);
  return edge ? *edge - half : now + burst_spacing_;
}

HostTime CounterSchedule::steady(HostTime now) const {
  if (plan_.every_update) {
    // A fifth of a period on: an update can be seen up to 16 ms late.
    const Duration margin = plan_.refresh / 5;
    const auto edge = edges_.next_after(now - margin);
    return edge ? *edge + margin : now + plan_.refresh;
  }
  const HostTime due = now + plan_.rarely;
  const auto edge = edges_.next_after(due);
  return edge ? *edge - plan_.refresh / 2 : due;
}

void CounterSchedule::restart(HostTime now) {
  edges_.forget();
  learning_ = true;
  burst_end_ = HostTime{};
  plan_.first_burst = now;
}

}  // namespace jouleprof::meters::nvml
