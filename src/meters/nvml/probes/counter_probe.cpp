#include <algorithm>
#include <chrono>
#include <cmath>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters::nvml {

using namespace std::chrono_literals;

namespace {

constexpr const char* kName = "nvmlDeviceGetTotalEnergyConsumption";
// A device that is on draws power: a counter at rest for this long and 20 updates is frozen.
constexpr Duration kFrozen = 2s;

constexpr Duration kLearn = 1s;
constexpr int kFollowEvery = 12;  // rare reads ...
constexpr Duration kFollowAfter =
    30s;  // ... and so much time, in which phases drift by a millisecond
constexpr int kFollowReads = 6;
constexpr Duration kFollowSpacing = 8ms;

// The check of the period needs updates in a row, seen within this time.
constexpr Duration kCheckSpan = std::chrono::seconds(2);
constexpr int kShortestRow = 3;

HostTime middle(HostTime a, HostTime b) { return a + (b - a) / 2; }

constexpr Duration kDenseSpacing = std::chrono::milliseconds(25);

}  // namespace

Result<Energy> read_total_energy(const NvmlApi& api, abi::Device device, abi::Return& code) {
  unsigned long long mj = 0;
  code =
      api.total_energy != nullptr ? api.total_energy(device, &mj) : abi::Return::kFunctionNotFound;
  if (code != abi::Return::kSuccess) return tl::unexpected(nvml_error(api, kName, code));
  // Above 2^63 microjoules nothing fits: 9.2 TJ, no board's lifetime.
  if (is_sentinel(mj) || mj > 9'000'000'000'000'000ULL) {
    return fail(Errc::kUnavailable, std::string(kName) + ": the driver returned its no-value mark");
  }
  return Energy::millijoules(static_cast<std::int64_t>(mj));
}

HostTime CounterProbe::read(model::Readings& out) {
  const HostTime now = clock_.now().host;
  if (due_ && now + 1ms < *due_) return read_early(now, out);
  due_ = read_once(out);
  if (wait_ && wait_->from && last_ && last_->total == *wait_->from && now < wait_->until) {
    due_ = clock_.now().host + kDenseSpacing;
  } else {
    wait_.reset();
  }
  return *due_;
}

HostTime CounterProbe::read_early(HostTime now, model::Readings& out) {
  wait_.reset();
  // An update can be seen late, and a read takes some time itself.
  const auto update = schedule_.edges().next_after(now - plan_.refresh / 5);
  if (update && *update < now + plan_.refresh / 4) {
    wait_ = Wait{};
    due_ = *update + plan_.refresh / 2;
    return *due_;
  }
  due_ = read_once(out);
  if (!update && last_) {
    wait_ = Wait{last_->total, now + plan_.refresh * 5 / 4};
    due_ = clock_.now().host + kDenseSpacing;
  }
  return *due_;
}

HostTime CounterProbe::read_once(model::Readings& out) {
  const HostTime before = clock_.now().host;
  abi::Return code{};
  auto total = read_total_energy(api_, device_, code);
  const HostTime after = clock_.now().host;
  if (!total) {
    state_.failed(sensor_, after, std::move(total.error()), out);
    if (is_lost(code)) {
      schedule_.restart(after + kLostRetry);
      last_.reset();
      return after + kLostRetry;
    }
    return after + schedule_.period();
  }
  out.counters.push_back({sensor_, before, after, *total});
  if (!last_ || *total != last_->total) {
    moved_ = after;
    state_.succeeded();
  } else if (after - moved_ > kFrozen && after - moved_ > plan_.refresh * 20) {
    state_.failed(sensor_, after,
                  {Errc::kUnavailable, std::string(kName) + ": the counter has stopped counting"},
                  out);
  }
  std::optional<HostTime> changed_since;
  if (last_ && *total < last_->total) {
    schedule_.restart(after);
  } else if (last_ && *total > last_->total) {
    changed_since = last_->before;
  }
  last_ = {sensor_, before, after, *total};
  return schedule_.next(before, after, changed_since);
}

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
  if (after - last_burst_ >= std::max<Duration>(kFollowEvery * plan_.rarely, kFollowAfter)) {
    return begin_burst(after);
  }
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
