#include "analysis/timeline/sensors/counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace jouleprof::analysis {

using namespace std::chrono_literals;

// In microjoules as they end up in a reading.
bool is_no_value(Energy raw) {
  constexpr std::int64_t kAllBits32 = 0xFFFFFFFF;
  const std::int64_t n = raw.microjoules();
  // The top of the range: all 64 bits set, whatever the unit it was multiplied by.
  constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max() / 2;
  return n < 0 || n >= kTop || n == kAllBits32 * 1000 || n == kAllBits32 * 1000 * 1000;
}

CounterUnwrapper::Step CounterUnwrapper::judge(const Accepted& from,
                                               const model::CounterReading& to,
                                               Energy& change) const {
  // One update may have been due just before the first read and another just before the second.
  const Duration elapsed = to.after - from.reading.before;
  const Duration updated = elapsed + 2 * traits_.refresh.value_or(Duration{500ms});
  const Power likely = from.recent ? *from.recent * 10 + Power::watts(1000) : kAbsurdPower;
  const Energy limit = std::min(likely, kAbsurdPower) * updated;
  change = to.total - from.reading.total;
  if (traits_.wrap) {
    const Energy least = change < Energy{} ? change + *traits_.wrap : change;
    if (least < Energy{}) return Step::kReset;
    // At twice the recent power, could it have gone round once more?
    if (from.recent && least + *traits_.wrap <= *from.recent * 2 * elapsed) return Step::kReset;
    if (change < Energy{}) {
      if (least > limit) return Step::kReset;
      change = least;
      return Step::kForward;
    }
  }
  if (change < Energy{}) return Step::kReset;
  return change <= limit ? Step::kForward : Step::kImplausible;
}

void CounterUnwrapper::accept(const model::CounterReading& reading, Energy change,
                              std::vector<CounterPoint>& out) {
  Accepted next{reading, last_->energy + change, last_->recent};
  const Duration elapsed = reading.after - last_->reading.after;
  if (elapsed >= 50ms) {
    const Power now = change / elapsed;
    next.recent = last_->recent ? *last_->recent * 0.8 + now * 0.2 : now;
  }
  previous_ = last_;
  last_ = next;
  out.push_back({reading.before, reading.after, next.energy, segment_});
}

void CounterUnwrapper::split(const model::CounterReading& reading, const char* why,
                             std::vector<CounterPoint>& out) {
  notes_.push_back({reading.before, why});
  ++segment_;
  previous_.reset();
  last_->reading = reading;
  out.push_back({reading.before, reading.after, last_->energy, segment_});
}

bool CounterUnwrapper::is_likely(const Accepted& from, const model::CounterReading& to,
                                 Energy change) {
  const Duration elapsed = to.after - from.reading.after;
  if (!from.recent || elapsed <= Duration{}) return true;
  const Power now = change / elapsed;
  return now <= *from.recent * 3 && now * 3 >= *from.recent;
}

// A reading that was too high shows when the counter then continues from the one before it.
bool CounterUnwrapper::drop_high(const model::CounterReading& reading,
                                 std::vector<CounterPoint>& out) {
  if (!previous_ || !previous_->recent || out.empty()) return false;
  if (out.back().before != last_->reading.before) return false;
  Energy change;
  if (judge(*previous_, reading, change) != Step::kForward) return false;
  const Energy jump = last_->energy - previous_->energy;
  if (!is_likely(*previous_, reading, change) || is_likely(*previous_, last_->reading, jump)) {
    return false;
  }
  notes_.push_back(
      {last_->reading.before, "one reading of the energy counter was too high; dropped"});
  out.pop_back();
  last_ = previous_;
  previous_.reset();
  return true;
}

void CounterUnwrapper::resolve(const model::CounterReading& doubtful,
                               const model::CounterReading& reading,
                               std::vector<CounterPoint>& out) {
  const bool is_fall = doubtful.total < last_->reading.total;
  Energy whole;  // since last_
  Energy rest;   // since `doubtful`
  const Accepted reset{doubtful, last_->energy, last_->recent};
  const bool returns = judge(*last_, reading, whole) == Step::kForward;
  const bool stays = judge(reset, reading, rest) == Step::kForward;
  if (stays && is_fall && drop_high(doubtful, out)) {
    push(doubtful, out);
    push(reading, out);
    return;
  }
  const char* const why =
      is_fall ? "the energy counter started again from a lower value (a driver reload?); the "
                "energy in between is unknown"
              : "the energy counter jumped to another value; the energy in between is unknown";
  if (returns && stays) {
    const bool likely_return = is_likely(*last_, reading, whole);
    const bool likely_stay = is_likely(reset, reading, rest);
    const bool is_small = rest - whole < Energy::microjoules(whole.microjoules() / 10);
    if (likely_return == likely_stay && !is_small) {
      split(reading, why, out);
      return;
    }
    if (likely_stay && !likely_return) {
      split(doubtful, why, out);
      accept(reading, rest, out);
      return;
    }
  } else if (stays) {
    split(doubtful, why, out);
    accept(reading, rest, out);
    return;
  }
  notes_.push_back({doubtful.before, is_fall
                                         ? "one reading of the energy counter was too low; dropped"
                                         : "the energy counter jumped absurdly once; dropped"});
  push(reading, out);
}

void CounterUnwrapper::push(const model::CounterReading& reading, std::vector<CounterPoint>& out) {
  if (is_no_value(reading.total)) {
    notes_.push_back({reading.before, "the energy counter returned a no-value pattern; dropped"});
    return;
  }
  if (!last_) {
    last_ = Accepted{reading, {}, {}};
    out.push_back({reading.before, reading.after, {}, segment_});
    return;
  }
  const HostTime newest = doubtful_ ? doubtful_->after : last_->reading.after;
  if (reading.after < reading.before || reading.after < newest) {
    notes_.push_back({reading.before, "a read of the energy counter out of order; dropped"});
    return;
  }
  if (doubtful_) {
    const model::CounterReading doubtful = *doubtful_;
    doubtful_.reset();
    resolve(doubtful, reading, out);
    return;
  }
  Energy change;
  switch (judge(*last_, reading, change)) {
    case Step::kForward:
      accept(reading, change, out);
      break;
    case Step::kImplausible:
      doubtful_ = reading;
      break;
    case Step::kReset:
      if (change < Energy{}) {
        doubtful_ = reading;
      } else {
        split(reading,
              "the energy counter may have wrapped unobserved; the energy in between is unknown",
              out);
      }
      break;
  }
}

}  // namespace jouleprof::analysis
