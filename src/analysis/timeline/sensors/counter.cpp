#include "analysis/timeline/sensors/counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {

using namespace std::chrono_literals;

namespace {

// Of a counter with a range: RAPL is read often enough to see each wrap at this power.
constexpr Power kMostWrapping = Power::watts(1000);

}  // namespace

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
  // A counter that stood still catches up with all since.
  const Duration updated = to.after - std::min(from.reading.before, from.recent_at) +
                           2 * traits_.refresh.value_or(Duration{500ms});
  const Power likely = from.recent ? *from.recent * 10 + Power::watts(1000) : most_;
  const Energy limit = std::min(likely, most_) * updated;
  change = to.total - from.reading.total;
  if (traits_.wrap) {
    const Energy least = change < Energy{} ? change + *traits_.wrap : change;
    if (least < Energy{}) return Step::kReset;
    // Could it have gone round once more? The power of reads that failed may have been any.
    const Power most = std::max(kMostWrapping, from.recent.value_or(Power{}) * 2);
    if (least + *traits_.wrap <= most * elapsed) return Step::kReset;
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
  Accepted next = *last_;
  next.reading = reading;
  next.energy += change;
  // Reads may come more often than updates.
  const Duration elapsed = reading.after - next.recent_at;
  if (change > Energy{} &&
      elapsed >= std::max<Duration>(50ms, 2 * traits_.refresh.value_or(Duration{}))) {
    const Power now = (next.energy - next.recent_energy) / elapsed;
    next.recent = last_->recent ? *last_->recent * 0.8 + now * 0.2 : now;
    next.recent_at = reading.after;
    next.recent_energy = next.energy;
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
  last_->recent_at = reading.after;
  last_->recent_energy = last_->energy;
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
  const Accepted reset{doubtful, last_->energy, last_->recent, doubtful.after, {}};
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
    last_ = Accepted{reading, {}, {}, reading.after, {}};
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

std::optional<Note> CounterUnwrapper::take_doubt() {
  if (!doubtful_ || std::exchange(doubt_is_noted_, true)) return std::nullopt;
  return Note{doubtful_->before,
              doubtful_->total < last_->reading.total
                  ? "the energy counter fell in its last reading, and no other shows why; dropped"
                  : "the energy counter jumped absurdly in its last reading; dropped"};
}

namespace {

constexpr double kUnitSeconds = 2;
constexpr double kUnitWatts = 5;
constexpr double kUnitAgreed = 0.3;
// Another unit explains a difference where it leaves no more than counters and power sensors of one
// board differ by.
constexpr double kUnitFits = 0.15;
constexpr double kUnitApart = 5;    // times: units that are not taken for one another by noise
constexpr double kUnitAlike = 0.2;  // of the energy: halves of a counter of another unit
constexpr double kUnitNoise = 0.5;  // of the energy, of a comparison that shows which unit fits
constexpr double kUnitClear = 0.5;  // of a difference: noise that does not explain it
constexpr std::size_t kUnitReadings = 8192;

struct CounterUnit {
  double joules;
  const char* name;
};
constexpr std::array kCounterUnits{CounterUnit{1e-6, "1 uJ"}, CounterUnit{15.3e-6, "15.3 uJ"},
                                   CounterUnit{1.0 / 65536, "2^-16 J"}, CounterUnit{1e-3, "1 mJ"}};

struct UnitCandidate {
  double factor = 1;
  const char* stated = "";
  const char* real = "";
};

bool unit_agrees(double ratio) { return std::abs(ratio - 1) <= kUnitAgreed; }

// The pair of units whose ratio brings the counter closest to the power.
std::optional<UnitCandidate> unit_candidate_for(double ratio) {
  std::optional<UnitCandidate> best;
  double least = 0;
  for (const CounterUnit& stated : kCounterUnits) {
    for (const CounterUnit& real : kCounterUnits) {
      const double factor = real.joules / stated.joules;
      if (std::abs(std::log(factor)) < std::log(kUnitApart)) continue;
      if (std::abs(ratio * factor - 1) > kUnitFits) continue;
      const double apart = std::abs(std::log(ratio * factor));
      if (best && apart >= least) continue;
      best = {factor, stated.name, real.name};
      least = apart;
    }
  }
  return best;
}

}  // namespace

void UnitCheck::see(const model::CounterReading& reading) {
  if (verdict_.state != UnitVerdict::State::kUnverified) return;
  if (readings_.size() >= kUnitReadings) {
    readings_.erase(readings_.begin(), readings_.begin() + kUnitReadings / 2);
  }
  readings_.push_back(reading);
}

// A counter's value changed between the read before and the read that showed it, and at most a
// period before the latter. Those since it last fell: it restarted or wrapped.
std::vector<UnitCheck::Update> UnitCheck::updates(TimeBase time,
                                                  const model::Sensor& counter) const {
  const double refresh = counter.traits.refresh ? seconds(*counter.traits.refresh) : INFINITY;
  std::vector<Update> out;
  for (std::size_t i = 1; i < readings_.size(); ++i) {
    const auto& before = readings_[i - 1];
    const auto& now = readings_[i];
    if (now.total == before.total) continue;
    if (now.total < before.total) {
      out.clear();
      continue;
    }
    const double to = time.seconds_of(now.after);
    const double from =
        std::max(time.seconds_of(before.before), time.seconds_of(now.before) - refresh);
    out.push_back({0.5 * (from + to), 0.5 * (to - from), now.total.joules()});
  }
  return out;
}

const UnitVerdict& UnitCheck::judge(
    const PowerShape& shape, TimeBase time, const model::Sensor& counter,
    const std::function<UnseenEnergy(double from, double to)>& unseen) {
  if (verdict_.state != UnitVerdict::State::kUnverified) return verdict_;
  if (shape.samples().size() < 3 || shape.is_frozen()) return verdict_;
  auto edges = updates(time, counter);
  const auto& samples = shape.samples();
  std::erase_if(edges, [&](const Update& e) {
    return e.at < samples.front().begin || e.at > samples.back().end;
  });
  if (edges.size() < 3) return verdict_;
  struct Compared {
    double counted = 0;
    double sampled = 0;
    double noise = 0;
    UnseenEnergy unseen;
    double ratio() const { return counted / sampled; }
  };
  // By which the samples may be late.
  double late = shape.window() > 0 ? shape.window() : shape.spacing();
  const model::Sensor& power = shape.sensor();
  if (power.kind == model::SensorKind::kPowerAverage && !power.traits.window) {
    late = kErrors.unknown_window;
  }
  const auto compare = [&](const Update& from, const Update& to) {
    Compared c;
    c.counted = to.joules - from.joules;
    // The shape has corrected power, and the readings are as they were read.
    c.sampled = shape.integral(from.at, to.at) / counter.traits.correction;
    c.unseen = unseen(from.at, to.at);
    c.noise = (from.half + to.half) * shape.highest_watts() +
              std::max(2 * std::sqrt(shape.missed_variance(from.at, to.at)), c.unseen.locked);
    for (const Update* end : {&from, &to}) {
      const double reach = std::max(late, 2 * shape.spacing());
      c.noise += late * shape.variation(end->at - reach, end->at + reach).range;
    }
    return c;
  };
  const Update& first = edges.front();
  const Update& last = edges.back();
  const double length = last.at - first.at;
  if (length < kUnitSeconds || shape.missing_seconds(first.at, last.at) > 0) return verdict_;
  const Compared all = compare(first, last);
  if (all.sampled < kUnitWatts * length || all.counted <= 0) return verdict_;
  verdict_.ratio = all.ratio();
  verdict_.seconds = length;
  const auto decide = [&](UnitVerdict::State state, std::string reason) -> const UnitVerdict& {
    verdict_.state = state;
    verdict_.reason = std::move(reason);
    return verdict_;
  };
  const std::string seen =
      fmt::format("{:.4g} J were counted and {:.4g} J integrated from power in {:.1f} s",
                  all.counted, all.sampled, length);
  if (unit_agrees(verdict_.ratio)) {
    return decide(UnitVerdict::State::kAgrees, fmt::format("its unit is verified: {}", seen));
  }
  const double apart = std::abs(all.counted - all.sampled);
  const double bound = all.counted > all.sampled ? all.unseen.more : all.unseen.less;
  if (all.noise > kUnitClear * (apart - bound)) return verdict_;
  const double half = shape.integral(first.at, last.at) / 2;
  const auto middle = std::find_if(edges.begin() + 1, edges.end() - 1, [&](const Update& e) {
    return shape.integral(first.at, e.at) >= half;
  });
  for (const Compared& part : {compare(first, *middle), compare(*middle, last)}) {
    const double expected = part.counted / verdict_.ratio;
    if (std::abs(expected - part.sampled) > kUnitAlike * part.sampled + part.noise) return verdict_;
  }
  const auto found = unit_candidate_for(verdict_.ratio);
  if (found && all.noise <= kUnitNoise * all.sampled) {
    verdict_.factor = found->factor;
    return decide(UnitVerdict::State::kRescaled,
                  fmt::format("{} counts in units of {} instead of {}: {}; its readings are "
                              "multiplied by {:.5g}",
                              counter.name, found->real, found->stated, seen, found->factor));
  }
  return decide(
      UnitVerdict::State::kRefused,
      fmt::format("{} is not used: {}, and no known unit explains that", counter.name, seen));
}

std::string unit_text(const UnitVerdict& verdict) {
  if (verdict.state != UnitVerdict::State::kUnverified) return verdict.reason;
  if (verdict.seconds <= 0) {
    return "its unit is not verified: it needs 2 s of power of at least 5 W, and updates meanwhile";
  }
  return fmt::format(
      "its unit is not verified: it counted {:.2f} times what power integrates to in {:.1f} s, and "
      "the readings do not show why",
      verdict.ratio, verdict.seconds);
}

}  // namespace jouleprof::analysis
