#include "analysis/timeline/counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// What drivers return instead of a value, in microjoules as they end up in a reading.
bool is_no_value(Energy raw) {
  constexpr std::int64_t kAllBits32 = 0xFFFFFFFF;
  const std::int64_t n = raw.microjoules();
  // The top of the range: all 64 bits set, whatever the unit it was multiplied by.
  constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max() / 2;
  return n < 0 || n >= kTop || n == kAllBits32 * 1000 || n == kAllBits32 * 1000 * 1000;
}

}  // namespace

CounterUnwrapper::Step CounterUnwrapper::judge(const model::CounterReading& from,
                                               const model::CounterReading& to, Energy& change) {
  // One update may have been due just before the first read and another just before the second.
  const Duration elapsed = to.after - from.before;
  const Energy limit = kAbsurdPower * (elapsed + 2 * traits_.refresh.value_or(Duration{500ms}));
  change = to.total - from.total;
  if (traits_.wrap) {
    const Energy least = change < Energy{} ? change + *traits_.wrap : change;
    if (least < Energy{}) return Step::kReset;
    // At twice the power seen lately, could it have gone round once more?
    if (recent_ && least + *traits_.wrap <= *recent_ * 2 * elapsed) return Step::kReset;
    if (change < Energy{}) {
      change = least;
      const Power likely = recent_ ? *recent_ * 10 + Power::watts(1000) : kAbsurdPower;
      const Energy most = likely * (elapsed + 2 * traits_.refresh.value_or(Duration{500ms}));
      return change <= std::min(limit, most) ? Step::kForward : Step::kReset;
    }
  }
  if (change < Energy{}) return Step::kReset;
  return change <= limit ? Step::kForward : Step::kImplausible;
}

void CounterUnwrapper::accept(const model::CounterReading& reading, Energy change,
                              std::vector<CounterPoint>& out) {
  const Duration elapsed = reading.after - last_->after;
  if (elapsed >= 50ms) {
    const Power now = change / elapsed;
    recent_ = recent_ ? *recent_ * 0.8 + now * 0.2 : now;
  }
  energy_ += change;
  last_ = reading;
  out.push_back({reading.before, reading.after, energy_, segment_});
}

void CounterUnwrapper::split(const model::CounterReading& reading, const char* why,
                             std::vector<CounterPoint>& out) {
  notes_.push_back({reading.before, why});
  ++segment_;
  last_ = reading;
  out.push_back({reading.before, reading.after, energy_, segment_});
}

void CounterUnwrapper::push(const model::CounterReading& reading, std::vector<CounterPoint>& out) {
  if (is_no_value(reading.total)) {
    notes_.push_back({reading.before, "the energy counter returned a no-value pattern; dropped"});
    return;
  }
  if (!last_) {
    last_ = reading;
    out.push_back({reading.before, reading.after, energy_, segment_});
    return;
  }
  if (reading.after < reading.before || reading.after < last_->after) {
    notes_.push_back({reading.before, "a read of the energy counter out of order; dropped"});
    return;
  }
  Energy change;
  if (doubtful_) {
    const model::CounterReading doubtful = *doubtful_;
    doubtful_.reset();
    Energy back;
    const bool returns = judge(*last_, reading, back) == Step::kForward;
    const bool stays = judge(doubtful, reading, change) == Step::kForward;
    if (!returns && stays) {
      split(doubtful,
            "the energy counter jumped to another value; the energy in between is unknown", out);
      accept(reading, change, out);
      return;
    }
    notes_.push_back({doubtful.before, "the energy counter jumped absurdly once; dropped"});
  }
  switch (judge(*last_, reading, change)) {
    case Step::kForward:
      accept(reading, change, out);
      break;
    case Step::kImplausible:
      doubtful_ = reading;
      break;
    case Step::kReset:
      split(reading,
            change < Energy{} && !traits_.wrap
                ? "the energy counter started again from a lower value (a driver reload?); the "
                  "energy in between is unknown"
                : "the energy counter may have wrapped or been reset unseen; the energy in between "
                  "is unknown",
            out);
      break;
  }
}

}  // namespace jouleprof::analysis
