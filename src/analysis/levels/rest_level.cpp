#include "analysis/levels/rest_level.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>

#include "analysis/levels/domains.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kLeastHighClock = 1.2e9;  // hertz
constexpr double kHeldClock = 0.5;         // of the highest
constexpr double kAnyUse = 0.005;          // of utilisation, while a clock is read
constexpr double kBusy = 0.05;             // of utilisation, in an idle span
constexpr Duration kTogether = 200ms;      // gauges of one round

// What was read together with `t`, the nearest one.
std::optional<double> read_at(const std::vector<model::GaugeReading>& readings, HostTime t) {
  auto next = std::lower_bound(readings.begin(), readings.end(), t,
                               [](const auto& r, HostTime x) { return r.at < x; });
  const bool is_before_nearer = next != readings.begin() &&
                                (next == readings.end() || t - std::prev(next)->at < next->at - t);
  if (is_before_nearer) --next;
  if (next == readings.end() || std::chrono::abs(next->at - t) > kTogether) return std::nullopt;
  return next->value;
}

constexpr Duration kLook = 300ms;  // before a reading of utilisation, which is a mean of the past
constexpr Duration kLag = 20ms;
constexpr Duration kHeldStep = 50ms;
constexpr std::size_t kMany = 3;

bool is_steady(EnergyTimeline& timeline, HostTime begin, HostTime end) {
  double low = 1e300;
  double high = 0;
  for (const auto& step : timeline.curve(begin, end, kHeldStep)) {
    low = std::min(low, step.power.watts());
    high = std::max(high, step.power.watts());
  }
  return high >= low && high - low <= std::max(kErrors.steady_watts, kErrors.steady_ratio * high);
}

std::vector<double> quiet_powers(EnergyTimeline& timeline, const model::Domain& domain,
                                 const model::Recording& recording, const BoardState& state) {
  std::vector<double> powers;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kGpuUtilisation)) {
    const HostTime begin = r.at - kLook;
    const HostTime end = r.at - kLag;
    // The power of a board whose context has just ended is neither held nor rest.
    if (r.value > kAnyUse || !state.is_between(true, begin) || !state.is_between(true, end) ||
        state.was_traced(begin, end))
      continue;
    if (!is_steady(timeline, begin, end)) continue;
    if (const auto m = timeline.energy(begin, end))
      powers.push_back((m->energy / (end - begin)).watts());
  }
  std::ranges::sort(powers);
  return powers;
}

}  // namespace

BoardState::BoardState(const model::Recording& recording, const model::Domain& domain) {
  const auto clocks = gauge_of(recording, domain, model::gauge::kSmClock);
  const auto utilisations = gauge_of(recording, domain, model::gauge::kGpuUtilisation);
  const auto counts = gauge_of(recording, domain, model::gauge::kProcessCount);
  double highest = kLeastHighClock;
  for (const auto& r : clocks) highest = std::max(highest, r.value);
  for (const auto& r : clocks) {
    // A utilisation is a mean over the second before: work that ended leaves one.
    const bool used =
        read_at(utilisations, r.at).value_or(0) > kAnyUse && read_at(counts, r.at).value_or(1) > 0;
    evidence_.push_back({r.at, r.value > kHeldClock * highest || used});
  }
  if (clocks.empty()) {
    for (const auto& r : counts) {
      evidence_.push_back({r.at, r.value > 0});
    }
    for (const auto& r : recording.process_readings.gpu_processes) {
      if (is_use_of(recording, r.domain, domain)) evidence_.push_back({r.at, true});
    }
  }
  add_traces(recording, domain);
  if (clocks.empty() && !evidence_.empty()) add_idle_spans(recording, utilisations);
  std::ranges::stable_sort(evidence_, [](const auto& a, const auto& b) { return a.at < b.at; });
  // A clock that was read while a launch ran does not count as rest.
  std::erase_if(evidence_, [&](const auto& e) { return !e.held && was_traced(e.at, e.at); });
}

void BoardState::add_traces(const model::Recording& recording, const model::Domain& domain) {
  for (const auto& trace : recording.traces) {
    for (const auto& chunk : trace.chunks) {
      if (!model::is_bins(chunk.kind) || !is_on(recording, trace, chunk, domain)) continue;
      evidence_.push_back({chunk.begin, true});
      evidence_.push_back({chunk.end, true});
      traced_.push_back({chunk.begin, chunk.end});
    }
  }
  std::ranges::sort(traced_, [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<RecordedSpan> joined;
  for (const auto& s : traced_) {
    if (joined.empty() || s.begin > joined.back().end) joined.push_back(s);
    joined.back().end = std::max(joined.back().end, s.end);
  }
  traced_ = std::move(joined);
}

void BoardState::add_idle_spans(const model::Recording& recording,
                                const std::vector<model::GaugeReading>& utilisations) {
  const auto looked_at = evidence_;
  for (const auto& span : recording.idle_spans) {
    const auto inside = [&](const auto& e) { return e.at >= span.begin && e.at <= span.end; };
    const bool is_held =
        std::ranges::any_of(looked_at, [&](const auto& e) { return e.held && inside(e); });
    const bool is_used = std::ranges::any_of(
        utilisations, [&](const auto& r) { return r.value > kBusy && inside(r); });
    if (is_held || is_used) continue;
    evidence_.push_back({span.begin, false});
    evidence_.push_back({span.end, false});
  }
}

std::vector<StateChange> BoardState::changes() const {
  std::vector<StateChange> out;
  for (std::size_t i = 1; i < evidence_.size(); ++i) {
    if (evidence_[i].held == evidence_[i - 1].held) continue;
    out.push_back({evidence_[i - 1].at, evidence_[i].at, evidence_[i].held});
  }
  return out;
}

bool BoardState::is_between(bool held, HostTime t) const {
  const auto next = std::lower_bound(evidence_.begin(), evidence_.end(), t,
                                     [](const auto& e, HostTime x) { return e.at < x; });
  if (next != evidence_.end() && next->at == t) return next->held == held;
  if (evidence_.empty()) return false;
  if (next != evidence_.end() && next->held != held) return false;
  return next == evidence_.begin() || std::prev(next)->held == held;
}

std::vector<RecordedSpan> BoardState::rests() const {
  std::vector<RecordedSpan> out;
  bool open = false;
  for (const auto& e : evidence_) {
    if (!e.held && open) out.back().end = e.at;
    if (!e.held && !open) out.push_back({e.at, e.at});
    open = !e.held;
  }
  return out;
}

bool BoardState::was_traced(HostTime begin, HostTime end) const {
  const auto next = std::lower_bound(traced_.begin(), traced_.end(), begin,
                                     [](const auto& s, HostTime t) { return s.end < t; });
  return next != traced_.end() && next->begin <= end;
}

namespace {

constexpr Duration kEdge = 100ms;      // at both ends: sensors lag
constexpr Duration kShortest = 500ms;  // of an interval
constexpr Duration kStep = 100ms;      // of the curve whose slope is found
constexpr Duration kSustained = 1s;

enum class Why { kUnknown, kHeld, kListed, kFalling, kAboveLowest };

const char* text_of(Why why) {
  switch (why) {
    case Why::kHeld:
      return "a context was open or its clocks were up whenever it could have been at rest";
    case Why::kListed:
      return "other processes held contexts on it";
    case Why::kFalling:
      return "its power was still falling from earlier work";
    case Why::kAboveLowest:
      return "it drew less while the program ran than when it should have been at rest";
    case Why::kUnknown:
      break;
  }
  return "no time at rest was recorded";
}

class RestSearch {
 public:
  RestSearch(EnergyTimeline& timeline, const model::Domain& domain,
             const model::Recording& recording, const BoardState& state)
      : timeline_(timeline),
        domain_(domain),
        recording_(recording),
        state_(state),
        counts_(gauge_of(recording, domain, model::gauge::kProcessCount)),
        utilisations_(gauge_of(recording, domain, model::gauge::kGpuUtilisation)) {}

  LevelResult find() {
    for (const auto& span : recording_.idle_spans) take({span.begin, span.end});
    for (const auto& span : state_.rests()) take(span);
    const double highest = highest_rest();
    keep_lowest();
    std::vector<ObservedLevel> levels;
    for (const auto& f : found_) levels.push_back(f.level);
    auto joined = join(levels);
    // A second that seems to be below rest, within the error of its own energy, is not.
    const auto is_below = [&](const model::PowerStep& s) {
      const auto is_low = [&](double watts) {
        return joined->power.watts() > watts * (1 + kErrors.above_ratio) + kErrors.above_watts;
      };
      if (!is_low(s.power.watts())) return false;
      const auto m = timeline_.energy(s.begin, s.end);
      return m && is_low(((m->energy + m->repeatability) / (s.end - s.begin)).watts());
    };
    if (joined && lowest_sustained(timeline_, kSustained, is_below)) {
      joined.reset();
      why_ = Why::kAboveLowest;
    }
    LevelResult out;
    if (joined) {
      // Rest that changes during the work may have been at either level.
      joined->error = std::max(joined->error, Power::watts(highest) - joined->power);
      out.level = {joined->power, joined->error, "observed in this recording", true, celsius()};
      return out;
    }
    out.reason = text_of(why_);
    if (const auto& known = domain_.known_levels.rest) {
      out.level = {known->power, known->spread, "observed by an earlier run", false,
                   known->temperature_celsius};
    }
    return out;
  }

 private:
  struct Found {
    RecordedSpan span;
    ObservedLevel level;
  };

  // Of several reasons, the last one in the order of Why is given.
  void reject(Why why) { why_ = std::max(why_, why); }

  void take(RecordedSpan span) {
    const auto extent = timeline_.extent();
    if (!extent) return;
    span.begin = std::max(span.begin + kEdge, extent->begin);
    span.end = std::min(span.end - kEdge, extent->end);
    if (span.end - span.begin < kShortest) return;
    if (is_listed(span)) return reject(Why::kListed);
    if (state_.is_known() ? !is_at_rest(span) : is_busy(span)) return reject(Why::kHeld);
    while (true) {
      const Duration length = span.end - span.begin;
      if (length < kShortest) return reject(Why::kFalling);
      const auto m = timeline_.energy(span.begin, span.end);
      const auto slope = slope_of(span);
      if (!m || !slope) return;
      const double watts = (m->energy / length).watts();
      const double to_fall =
          kErrors.cooling * std::max(-slope->watts_per_second - 2 * slope->sigma, 0.0);
      if (to_fall <= std::max(kErrors.fall_watts, kErrors.fall_ratio * watts)) {
        const double error =
            std::hypot((m->repeatability / length).watts(),
                       kErrors.cooling * (std::abs(slope->watts_per_second) + slope->sigma));
        found_.push_back({span, {Power::watts(watts), Power::watts(error)}});
        return;
      }
      span.begin += length / 2;
    }
  }

  // Of the recording's idle spans in which the board was at rest; 0: there is none.
  double highest_rest() const {
    double highest = 0;
    for (const auto& f : found_) {
      const bool is_idle_span = std::ranges::any_of(recording_.idle_spans, [&](const auto& span) {
        return f.span.begin >= span.begin && f.span.end <= span.end;
      });
      if (is_idle_span) {
        highest = std::max(highest, f.level.power.watts() + f.level.error.watts());
      }
    }
    return highest;
  }

  // Rest is the lowest state: what lies clearly above the lowest interval was not rest.
  void keep_lowest() {
    double lowest = 1e300;
    for (const auto& f : found_) lowest = std::min(lowest, f.level.power.watts());
    const double most = lowest * (1 + kErrors.above_ratio) + kErrors.above_watts;
    std::erase_if(found_, [&](const auto& f) { return f.level.power.watts() > most; });
  }

  bool is_at_rest(const RecordedSpan& span) const {
    const auto& all = state_.evidence();
    const bool any_context = std::ranges::any_of(
        all, [&](const auto& e) { return e.held && e.at >= span.begin && e.at <= span.end; });
    return !any_context && state_.is_between(false, span.begin + (span.end - span.begin) / 2);
  }

  bool is_listed(const RecordedSpan& span) const {
    for (const auto& r : counts_) {
      if (r.at >= span.begin && r.at <= span.end && r.value > 0) return true;
    }
    for (const auto& r : recording_.process_readings.gpu_processes) {
      if (r.at < span.begin || r.at > span.end) continue;
      if (is_use_of(recording_, r.domain, domain_)) return true;
    }
    return false;
  }

  bool is_busy(const RecordedSpan& span) const {
    double sum = 0;
    int count = 0;
    for (const auto& r : utilisations_) {
      if (r.at < span.begin || r.at > span.end) continue;
      sum += r.value;
      ++count;
    }
    return count > 0 && sum / count > kBusy;
  }

  struct Slope {
    double watts_per_second = 0;
    double sigma = 0;
  };
  // Least squares over steps of the power curve; absent with fewer than three.
  std::optional<Slope> slope_of(const RecordedSpan& span) const {
    std::vector<std::pair<double, double>> points;
    for (const auto& s : timeline_.curve(span.begin, span.end, kStep)) {
      points.emplace_back(seconds(s.begin - span.begin), s.power.watts());
    }
    const auto n = static_cast<double>(points.size());
    if (n < 3) return std::nullopt;
    double t = 0;
    double p = 0;
    for (const auto& [at, watts] : points) t += at / n, p += watts / n;
    double tt = 0;
    double tp = 0;
    for (const auto& [at, watts] : points) {
      tt += (at - t) * (at - t);
      tp += (at - t) * (watts - p);
    }
    double squares = 0;
    for (const auto& [at, watts] : points) {
      squares += std::pow(watts - p - tp / tt * (at - t), 2);
    }
    return Slope{tp / tt, std::sqrt(squares / (n - 2) / tt)};
  }

  std::optional<double> celsius() const {
    double sum = 0;
    int count = 0;
    for (const auto& r : gauge_of(recording_, domain_, model::gauge::kTemperature)) {
      for (const auto& [span, level] : found_) {
        if (r.at < span.begin - kEdge || r.at > span.end + kEdge) continue;
        sum += r.value;
        ++count;
      }
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  }

  EnergyTimeline& timeline_;
  const model::Domain& domain_;
  const model::Recording& recording_;
  const BoardState& state_;
  std::vector<model::GaugeReading> counts_;
  std::vector<model::GaugeReading> utilisations_;
  std::vector<Found> found_;
  Why why_ = Why::kUnknown;
};

}  // namespace

std::optional<Power> lowest_sustained(EnergyTimeline& timeline, Duration least,
                                      const std::function<bool(const model::PowerStep&)>& counts) {
  constexpr std::int64_t kMostSteps = 20'000;
  std::optional<Power> lowest;
  const auto extent = timeline.extent();
  if (!extent) return lowest;
  const Duration step = std::max(least, (extent->end - extent->begin) / kMostSteps);
  for (const auto& s : timeline.curve(extent->begin, extent->end, step)) {
    if (10 * (s.end - s.begin) <= 9 * least || (counts && !counts(s))) continue;
    if (!lowest || s.power < *lowest) lowest = s.power;
  }
  return lowest;
}

LevelResult rest_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state) {
  return RestSearch(timeline, domain, recording, state).find();
}

LevelResult held_level(EnergyTimeline& timeline, const model::Domain& domain,
                       const model::Recording& recording, const BoardState& state) {
  const auto powers = quiet_powers(timeline, domain, recording, state);
  LevelResult out;
  if (!powers.empty()) {
    const std::size_t tenth = powers.size() / 10;
    const double median = powers[powers.size() / 2];
    const double spread = (powers[powers.size() - 1 - tenth] - powers[tenth]) / 2;
    out.level = {Power::watts(median),
                 Power::watts(std::max(
                     spread, powers.size() < kMany ? kErrors.few_error : kErrors.least_error)),
                 "observed in this recording", true, std::nullopt};
    return out;
  }
  out.reason = "the GPU was never observed idle while a context held it";
  if (const auto& known = domain.known_levels.held) {
    out.level = {known->power, known->spread, "observed by an earlier run", false,
                 known->temperature_celsius};
  }
  return out;
}

std::optional<ObservedLevel> join(const std::vector<ObservedLevel>& observed) {
  if (observed.empty()) return std::nullopt;
  double weight = 0;
  double mean = 0;
  for (const auto& o : observed) {
    const double w = 1 / std::max(o.error.watts() * o.error.watts(), 1e-12);
    weight += w;
    mean += w * o.power.watts();
  }
  mean /= weight;
  double error = std::sqrt(1 / weight);
  for (const auto& o : observed) {
    const double apart = std::abs(o.power.watts() - mean);
    if (apart > o.error.watts()) error = std::max(error, apart);
  }
  return ObservedLevel{Power::watts(mean), Power::watts(error)};
}

}  // namespace jouleprof::analysis
