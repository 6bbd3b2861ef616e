#include <algorithm>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// --- What an EnergyTimeline's counter covers, and how its samples agree with it ---

// Seconds.
constexpr double kScaleTime = 60;  // of anchors that give the samples' scale
constexpr double kCell = 1;        // of one comparison of counter and samples

}  // namespace

double EnergyTimeline::gain_error() const {
  const double counter = sensors_.counter ? sensors_.counter->traits.scale.gain_most() : 0.0;
  const double power = sensors_.power ? sensors_.power->traits.scale.gain_most() : 0.0;
  return std::hypot(counter, power);
}

// Absent where samples are missing, and between segments.
std::optional<EnergyTimeline::Comparison> EnergyTimeline::compare(const Placed& from,
                                                                  const Placed& to) const {
  const double a = from.anchor.at;
  const double b = to.anchor.at;
  if (!has_samples() || from.anchor.segment != to.anchor.segment || b <= a) return std::nullopt;
  const auto& samples = shape_->samples();
  if (a < samples.front().begin || b > samples.back().end + shape_->spacing()) return std::nullopt;
  if (shape_->missing_seconds(a, b) > 0) return std::nullopt;
  Comparison out;
  out.counted = to.joules - from.joules;
  out.sampled = shape_->integral(a, b);
  out.variance = shape_->missed_variance(a, b);
  for (const Placed* end : {&from, &to}) {
    const double watts = std::max(shape_->swing(end->anchor.at), 0.1 * out.sampled / (b - a));
    out.variance += std::pow(end->anchor.sigma * watts, 2);
  }
  const double sigma = std::sqrt(out.variance);
  out.disagree = std::abs(out.counted - out.sampled) >
                 gain_error() * std::max(out.sampled, out.counted) + hidden_joules(a, b) +
                     3 * sigma + shape_->window() * (shape_->swing(a) + shape_->swing(b));
  return out;
}

// The energy in [a, b] by which counter and samples differ beyond noise and their usual closure,
// without what disagree() holds.
double EnergyTimeline::contradiction(double a, double b) const {
  if (!has_samples() || anchors_.size() < 2) return 0;
  const double from = std::max(a, anchors_.front().anchor.at);
  const double to = std::min(b, anchors_.back().anchor.at);
  if (to <= from || from < shape_->samples().front().begin ||
      to > shape_->samples().back().end + shape_->spacing() ||
      shape_->missing_seconds(from, to) > 0) {
    return 0;
  }
  const double joules = joules_at(to) - joules_at(from);
  const double noise = std::sqrt(shape_->missed_variance(from, to)) + hidden_joules(from, to) +
                       shape_->window() * (shape_->swing(from) + shape_->swing(to));
  const double apart = std::abs(joules - shape_->integral(from, to));
  if (apart < noise + kErrors.closure * joules) return 0;
  return std::max(apart - (doubt_at(to) - doubt_at(from)), 0.0);
}

// Of short work, whose few samples may all see one phase of it: what counter and samples differ by
// between the anchors around it, beyond the error of their scale, and [a, b] was not given.
double EnergyTimeline::unplaced(double a, double b) const {
  if (!has_samples() || sees_all() || !is_short_work(a, b)) return 0;
  auto from = next_anchor(a);
  const auto to = next_anchor(b);
  if (from == anchors_.begin() || to == anchors_.end()) return 0;
  --from;
  const auto compared = compare(*from, *to);
  if (!compared) return 0;
  const double given = joules_at(b) - joules_at(a) - shape_->integral(a, b);
  const double apart = std::abs(compared->counted - compared->sampled - given);
  const double few = is_polled() ? unseen(a, b) : 0;
  if (few > 0) {
    // Nothing else shows which update a read belongs to, either.
    const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
    return std::min(few, apart + refresh * power_at(to->anchor.at));
  }
  return std::max(apart - kErrors.scale * compared->counted, 0.0);
}

// The watts by which the samples differ from the moving average over [a, b], and what noise may
// cause. Absent where no average covers it.
std::optional<double> EnergyTimeline::off_by_average(double a, double b, double& noise) const {
  if (!average_) return std::nullopt;
  double sum = 0;
  double variance = 0;
  double count = 0;
  for (const PowerSample& s : average_->samples()) {
    if (s.begin < a || s.end > b) continue;
    const double length = s.end - s.begin;
    sum += s.watts - shape_->integral(s.begin, s.end) / length;
    const double late = 0.1 * (shape_->swing(s.begin) + shape_->swing(s.end)) / length;
    variance += 4 * shape_->missed_variance(s.begin, s.end) / (length * length) + late * late;
    ++count;
  }
  if (count == 0) return std::nullopt;
  noise = std::sqrt(variance) / count;
  return sum / count;
}

// What the time of [a, b] that no sample's window holds may have drawn, where so few samples hold
// any of it that they do not show how power varied. Before and after work its samples show none of
// it: then a board may draw any power. Elsewhere power is within the range of that around.
double EnergyTimeline::unseen(double a, double b) const {
  if (!has_samples() || b <= a || (sees_all() && !is_polled())) return 0;
  double blind = b - a;
  double count = 0;
  const auto& samples = shape_->samples();
  const auto near = shape_->around(a, b);
  for (std::size_t i = near.first; i < near.last; ++i) {
    const double held = std::min(samples[i].end, b) - std::max(samples[i].begin, a);
    if (held < 0) continue;
    if (!is_polled()) blind -= held;
    if (++count >= kErrors.few_samples) return 0;
  }
  const double watts = (joules_at(b) - joules_at(a)) / (b - a);
  const double reach = kErrors.samples_around * shape_->spacing();
  double step = shape_->variation(a - reach, b + reach).range;
  if (is_work(a, b)) step = std::max(shape_->most_watts() - watts, watts - shape_->lowest_watts());
  return std::max(blind, 0.0) * std::max(step, 0.0);
}

// A value that is polled can be older than its timestamp by all of the sensor's period. A load
// model's is not: it is the mean since the one before, however late it was read.
bool EnergyTimeline::is_polled() const {
  return shape_->sensor().kind != model::SensorKind::kPowerRing && !is_model();
}

bool EnergyTimeline::is_model() const {
  return shape_->sensor().provenance == model::Provenance::kEstimated;
}

bool EnergyTimeline::sees_all() const { return is_model() || shape_->seen_fraction() > 0.98; }

bool EnergyTimeline::is_work(double a, double b) const {
  return work_.second > work_.first && a <= work_.first + 1e-6 && b >= work_.second - 1e-6;
}

// The mean share of [a, b] in which the board was busy; absent where it is not known, or where the
// board was busy throughout or not at all.
std::optional<double> EnergyTimeline::partly_busy(double a, double b) const {
  double sum = 0;
  double count = 0;
  const auto first =
      std::ranges::partition_point(utilisations_, [&](const auto& u) { return u.first < a; });
  for (auto u = first; u != utilisations_.end() && u->first <= b; ++u) {
    sum += u->second;
    ++count;
  }
  if (count == 0) return std::nullopt;
  const double busy = sum / count;
  if (busy <= kErrors.idle_below || busy >= kErrors.busy_above) return std::nullopt;
  return busy;
}

// Samples of one value while the board was busy for part of the time only: the rest of the time it
// may have drawn any power that it can.
double EnergyTimeline::hidden_by_utilisation(double a, double b) const {
  const auto busy = partly_busy(a, b);
  if (!busy) return 0;
  const double watts = shape_->integral(a, b) / (b - a);
  // A polled value can be older than the interval.
  const double margin = 2 * shape_->spacing();
  const auto variation = shape_->variation(a + margin, b - margin);
  if (variation.step > kErrors.one_value * watts || variation.range > kErrors.flat_range * watts) {
    return hidden_by_beat(a, b);
  }
  const double least = std::min(shape_->lowest_watts(), watts);
  const double lower = (1 - *busy) * (watts - least);
  const double upper =
      *busy < kErrors.mostly_busy ? *busy * (shape_->most_watts() - least) - (watts - least) : 0;
  return std::max(lower, upper) * (b - a);
}

// Samples that drift through a wide range, while the board is busy for part of the time: a load
// whose period nearly divides the sensor's shows it one phase after the other. Where power follows
// the utilisation, both give the same energy; else the interval holds both.
double EnergyTimeline::hidden_by_beat(double a, double b) const {
  const double reach = kErrors.samples_around * shape_->spacing();
  const auto around = shape_->variation(a - reach, b + reach);
  if (around.change > kErrors.drifting_step * around.range) return 0;
  const double least = shape_->lowest_watts();
  const double range = shape_->highest_watts() - least;
  double apart = 0;
  double length = 0;
  auto u = std::ranges::partition_point(utilisations_, [&](const auto& x) { return x.first <= a; });
  for (double from = a; u != utilisations_.end() && from < b; ++u) {
    const double to = std::min(u->first, b);
    if (u->second > kErrors.idle_below && u->second < kErrors.busy_above) {
      apart += (least + u->second * range) * (to - from) - shape_->integral(from, to);
      length += to - from;
    }
    from = to;
  }
  return std::abs(apart) + kErrors.beat_power * range * length;
}

// Nothing but these few samples shows the load's shape.
bool EnergyTimeline::is_short_work(double a, double b) const {
  return b - a < kErrors.short_seconds && is_work(a, b);
}

// The step of power that a load's pauses may hide at the ends of [a, b]: of a load that is busy for
// part of the time while its samples have one value, or whose samples recur.
double EnergyTimeline::hidden_step(double a, double b) const {
  const auto variation = shape_->variation(a, b);
  double step = is_short_work(a, b) ? variation.range : 0;
  const double watts = (joules_at(b) - joules_at(a)) / (b - a);
  const auto busy = partly_busy(a, b);
  if (busy && *busy < kErrors.mostly_busy && variation.range < kErrors.flat_range * watts) {
    step = std::max(step, std::max(watts - shape_->lowest_watts(), 0.0) / *busy);
  }
  if (shape_->recurrence(a, b) > 0) step = std::max(step, variation.range);
  return limit_watts_ > 0 ? std::min(step, limit_watts_) : step;
}

double EnergyTimeline::hidden_joules(double a, double b) const {
  if (!has_samples() || sees_all() || b <= a) return 0;
  const double locked = shape_->locked_joules(a, b);
  double noise = 0;
  const auto off = off_by_average(a, b, noise);
  if (!off) return std::max(locked, hidden_by_utilisation(a, b));
  const double seen = std::abs(*off) * (b - a);
  const double most = seen + noise * (b - a);
  return std::max(std::abs(*off) > noise ? seen : 0.0, std::min(locked, most));
}

// Without an average, a sensor whose windows hold a part of the time may show one phase alone of a
// load at its own rate. A sensor whose window is not known is read at times that vary, and a load
// that keeps the board busy or lets it rest throughout has no phases.
UnseenEnergy EnergyTimeline::unseen_energy(double a, double b) const {
  UnseenEnergy out;
  out.locked = hidden_joules(a, b);
  if (sees_all() || average_ || shape_->mean_window() <= 0) return out;
  const double watts = shape_->integral(a, b) / (b - a);
  const bool is_flat = shape_->variation(a, b).step <= kErrors.one_value * watts;
  if (!is_flat || (!utilisations_.empty() && !partly_busy(a, b))) return out;
  const double blind = (1 - shape_->seen_fraction()) * (b - a);
  const double most = limit_watts_ > 0 ? limit_watts_ : kErrors.most_of_idle * watts;
  out.more = blind * std::max(most - watts, 0.0);
  out.less = blind * (watts - watts / kErrors.most_of_idle);
  return out;
}

// Where the counter covers the interval, what samples miss is in it. Between the anchors around the
// interval it may lie outside of that, too.
double EnergyTimeline::hidden_in_samples(double a, double b, const Coverage& covered) const {
  if (!has_samples()) return 0;
  const double hidden = std::max(hidden_joules(a, b), unseen(a, b));
  if (hidden <= 0) return 0;
  if (anchors_.size() < 2) return hidden;
  const double joules = joules_at(b) - joules_at(a);
  const double lost = joules > 0 ? std::clamp(covered.lost / joules, 0.0, 1.0) : 1.0;
  const auto before = next_anchor(a);
  const auto after = next_anchor(b);
  const double from = before == anchors_.begin() ? a : std::prev(before)->anchor.at;
  const double to = after == anchors_.end() ? b : after->anchor.at;
  const double outside = (a - from) + (to - b);
  const double moved = average_ && outside > 0 ? outside / (to - from) : 0.0;
  return hidden * (lost + moved);
}

EnergyTimeline::Hidden EnergyTimeline::hidden(HostTime begin, HostTime end) {
  refresh();
  if (!time_ || !has_samples()) return {};
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  return {Energy::joules(hidden_in_samples(a, b, coverage(a, b))),
          duration_of(shape_->recurrence(a, b))};
}

// The anchor that ends the comparison from `first` on: a second later, or the last of the segment.
std::size_t EnergyTimeline::next_cell(std::size_t first) const {
  std::size_t i = first + 1;
  while (i + 1 < anchors_.size() && anchors_[i].anchor.at < anchors_[first].anchor.at + kCell &&
         anchors_[i + 1].anchor.segment == anchors_[first].anchor.segment) {
    ++i;
  }
  return i;
}

void EnergyTimeline::find_doubts() {
  std::size_t first = settled_anchors_ > 0 ? settled_anchors_ - 1 : 0;
  while (first + 1 < anchors_.size()) {
    const bool early = has_samples() && anchors_[first].anchor.at < shape_->samples().front().begin;
    const std::size_t last = early ? first + 1 : next_cell(first);
    const auto compared = compare(anchors_[first], anchors_[last]);
    const double doubt =
        compared && compared->disagree ? std::abs(compared->counted - compared->sampled) : 0.0;
    const double begin = anchors_[first].anchor.at;
    const double length = anchors_[last].anchor.at - begin;
    for (std::size_t i = first + 1; i <= last; ++i) {
      const double share = length > 0 ? (anchors_[i].anchor.at - begin) / length : 1.0;
      anchors_[i].doubt = anchors_[first].doubt + share * doubt;
    }
    first = last;
  }
}

double EnergyTimeline::doubt_at(double t) const {
  if (anchors_.empty()) return 0;
  const auto next = next_anchor(t);
  if (next == anchors_.begin()) return next->doubt;
  const Placed& from = *std::prev(next);
  if (next == anchors_.end()) return from.doubt;
  const double part = (t - from.anchor.at) / (next->anchor.at - from.anchor.at);
  return from.doubt + part * (next->doubt - from.doubt);
}

Energy EnergyTimeline::disagreement(HostTime begin, HostTime end) {
  refresh();
  if (!time_) return {};
  return Energy::joules(doubt_at(time_->seconds_of(end)) - doubt_at(time_->seconds_of(begin)));
}

EnergyTimeline::Coverage EnergyTimeline::coverage(double a, double b) const {
  Coverage out;
  if (knots_.size() < 2 || b <= a) return out;
  const bool shaped = has_samples();
  const auto joules = [this](double from, double to) { return joules_at(to) - joules_at(from); };
  const auto lose = [&](double from, double to, bool between) {
    if (to <= from) return;
    out.lost += joules(from, to);
    if (shaped) {
      out.unknown_seconds += shape_->missing_seconds(from, to);
      if (between) out.lost_variance += shape_->missed_variance(from, to);
    } else if (between) {
      out.unknown_seconds += to - from;
      out.lost_variance += std::pow(0.5 * joules(from, to), 2);
    }
  };
  if (anchors_.size() < 2) {
    if (shaped) out.unknown_seconds = shape_->missing_seconds(a, b);
    return out;
  }
  const auto at = [](const Placed& p) { return p.anchor.at; };
  lose(a, std::min(b, at(anchors_.front())), false);
  lose(std::max(a, at(anchors_.back())), b, false);
  // By segment: its first and its last anchor within [a, b].
  auto first = std::lower_bound(anchors_.begin(), anchors_.end(), a,
                                [](const Placed& p, double t) { return p.anchor.at < t; });
  if (first != anchors_.begin() && first != anchors_.end() &&
      std::prev(first)->anchor.segment != first->anchor.segment) {
    lose(a, std::min(b, at(*first)), true);
  }
  while (first != anchors_.end() && at(*first) <= b) {
    const auto segment = std::partition_point(first, anchors_.end(), [&](const Placed& p) {
      return p.anchor.segment <= first->anchor.segment;
    });
    if (segment == anchors_.end()) break;
    lose(std::max(a, at(*std::prev(segment))), std::min(b, at(*segment)), true);
    first = segment;
  }
  return out;
}

// By the anchors of the last minute. The scale is one before they show another (a prior with the
// gain errors of both sensors), and where they show one that these do not allow.
EnergyTimeline::Scale EnergyTimeline::scale_of_samples(double stop) const {
  if (!has_samples() || anchors_.size() < 2) return {};
  const double to = std::min(anchors_.back().anchor.at, stop + 1);
  double hidden = 0;
  Comparison seen;
  auto first = static_cast<std::size_t>(
      std::ranges::partition_point(anchors_,
                                   [&](const Placed& p) { return p.anchor.at < to - kScaleTime; }) -
      anchors_.begin());
  while (first + 1 < anchors_.size() &&
         anchors_[first].anchor.at < shape_->samples().front().begin) {
    ++first;
  }
  while (first + 1 < anchors_.size()) {
    const std::size_t last = next_cell(first);
    const auto compared = compare(anchors_[first], anchors_[last]);
    const std::size_t from = first;
    first = last;
    if (!compared) continue;
    if (compared->disagree) continue;
    seen.counted += compared->counted;
    seen.sampled += compared->sampled;
    seen.variance += compared->variance;
    hidden += hidden_joules(anchors_[from].anchor.at, anchors_[last].anchor.at);
  }
  double prior = gain_error() / kErrors.normal95;
  if (seen.sampled <= 0 || seen.counted <= 0) return {1, prior};
  // Samples that are locked to a load have another scale while it lasts.
  prior = std::hypot(prior, hidden / seen.sampled);
  const double ratio = seen.counted / seen.sampled;
  const double sigma = std::sqrt(seen.variance) / seen.sampled;
  const double both = std::hypot(prior, sigma);
  if (both <= 0) return {1, 0};
  const double weight = prior * prior / (both * both);
  return {1 + weight * (ratio - 1), prior * sigma / both};
}

namespace {

// --- How it is found that a counter stands still, or is renewed more rarely than known ---

// In seconds.
constexpr double kFrozen =
    1;  // while samples show power, of a counter whose period is not confirmed
constexpr double kFrozenLeast = 0.1;
constexpr double kStill = 1;  // of one value of a counter that is waited for, and ...
constexpr double kStillPeriods = 3;
constexpr double kFrozenAlone = 2;     // without samples
constexpr double kFrozenPeriods = 20;  // at least, of a counter that catches up at once
constexpr double kCounted = 1;         // of a counter, whose power until then is asked for ...
constexpr double kLeastCounted = 0.2;  // ... and at least
constexpr double kTwice = 2;           // ratio up to which two powers are about the same
constexpr double kLeastWatts = 0.05;   // of a domain whose counter is not frozen
constexpr int kUsualChanges = 5;       // of a counter, before it stood still ...
constexpr double kUsualTimes = 3;      // ... and how much longer than between these it does

bool is_about(double watts, double usual) {
  return watts <= kTwice * usual && usual <= kTwice * watts;
}

}  // namespace

bool EnergyTimeline::counter_stands_still() const {
  if (!sensors_.counter) return false;
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  return seconds(reads_.newest - reads_.moved) > std::max(kStill, kStillPeriods * refresh) &&
         !may_catch_up();
}

// Of a counter without samples: whether its value from the point `first` on, until `last`, has been
// one for so long that its next change may hold the energy of all that time.
bool EnergyTimeline::is_too_still(std::size_t first, std::size_t last) const {
  if (has_samples() || last <= first || points_[first].segment != points_[last].segment) {
    return false;
  }
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  return seconds(points_[last].before - points_[first].after) >=
         std::max(kFrozenLeast, kFrozenPeriods * refresh);
}

// Whether that is so of the newest points, of a counter that showed power until then, and changed
// much more often.
bool EnergyTimeline::may_catch_up() const {
  if (points_.empty() || frozen_ || !is_too_still(unchanged_from_, points_.size() - 1)) {
    return false;
  }
  double longest = 0;
  std::size_t to = unchanged_from_;  // the first point of a value
  for (int seen = 0; seen < kUsualChanges; ++seen) {
    if (to == 0 || points_[to - 1].segment != points_[to].segment) return false;
    std::size_t from = to - 1;
    while (from > 0 && points_[from - 1].energy == points_[from].energy) --from;
    longest = std::max(longest, seconds(points_[to].after - points_[from].after));
    to = from;
  }
  const double still = seconds(points_.back().before - points_[unchanged_from_].after);
  return still >= kUsualTimes * longest && watts_until(unchanged_from_).value_or(0) > kLeastWatts;
}

// How many points show energy. Those of a counter that may catch up show none yet.
std::size_t EnergyTimeline::known_points() const {
  return may_catch_up() ? unchanged_from_ + 1 : points_.size();
}

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
      if (!frozen_ && i > 0 && caught_up_at_once(unchanged_from_, i)) {
        add_note({points_[i].after,
                  "the energy counter stood still and caught up at once; when the energy was drawn "
                  "in between is not known"});
        points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(unchanged_from_) + 1,
                      points_.begin() + static_cast<std::ptrdiff_t>(i));
        i = unchanged_from_ + 1;
      }
      unchanged_from_ = i;
      frozen_ = false;
      continue;
    }
    const std::size_t first = unchanged_from_;
    if (!frozen_ && !is_frozen(points_[first], points_[i])) continue;
    const char* const text =
        has_samples()
            ? "the energy counter did not change while power was drawn; it is not used there"
            : "the energy counter did not change for seconds; the energy there is unknown";
    if (!frozen_) add_note({points_[first].after, text});
    for (Note& note : notes_) {
      if (note.text == text) note.last = std::max(note.last, points_[i].after);
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

// Watts that a counter showed for up to a second until `point`; absent after too short a time.
std::optional<double> EnergyTimeline::watts_until(std::size_t point) const {
  const CounterPoint& last = points_[point];
  std::size_t from = point;
  while (from > 0 && points_[from - 1].segment == last.segment &&
         seconds(last.after - points_[from - 1].after) <= kCounted) {
    --from;
  }
  const double length = seconds(last.after - points_[from].after);
  if (length < kLeastCounted) return std::nullopt;
  return (last.energy - points_[from].energy).joules() / length;
}

// Of a counter without samples, whose value from `first` on changed at `last`: whether it changed
// by what the time of all of that takes, and not by what the time since the read before takes.
bool EnergyTimeline::caught_up_at_once(std::size_t first, std::size_t last) const {
  if (points_[first].segment != points_[last].segment || !is_too_still(first, last - 1)) {
    return false;
  }
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  const auto usual = watts_until(first);
  const double joules = (points_[last].energy - points_[first].energy).joules();
  const double since = seconds(points_[last].after - points_[last - 1].before);
  return usual && joules > kTwice * kTwice * *usual * (since + kFrozenPeriods * refresh) &&
         is_about(joules / seconds(points_[last].after - points_[first].after), *usual);
}

// Whether a counter that was frozen now includes the energy of that time.
bool EnergyTimeline::catches_up(const CounterPoint& first, const CounterPoint& last) const {
  if (!has_samples()) {
    const auto usual = watts_until(static_cast<std::size_t>(&first - points_.data()));
    return usual &&
           is_about((last.energy - first.energy).joules() / seconds(last.after - first.after),
                    *usual);
  }
  const double from = time_->seconds_of(first.after);
  const double to = time_->seconds_of(last.after);
  const double expected = shape_->integral(from, to);
  const double refresh = seconds(sensors_.counter->traits.refresh.value_or(Duration{}));
  const double update = expected / std::max(to - from, 1e-3) * refresh;
  return std::abs((last.energy - first.energy).joules() - expected) <
         (0.05 + gain_error()) * expected + update;
}

}  // namespace jouleprof::analysis
