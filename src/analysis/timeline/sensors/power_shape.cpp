#include "analysis/timeline/sensors/power_shape.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/sensors/observed_sensor.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMissingFactor = 4;     // times the usual spacing
constexpr double kMostOfUnknown = 20e3;  // of a board of unknown limit
constexpr double kLongMissing = 1;       // seconds: power may have had any level
constexpr double kFrozen = 2;            // seconds
constexpr double kUnknownRefresh = 0.5;
constexpr std::size_t kFrozenSamples = 20;
constexpr double kRestFactor = 1.1;    // of the lowest sample
constexpr double kRestShare = 0.2;     // of the highest
constexpr double kNeverZero = 5;       // watts: a board that never shows less does not show 0 W
constexpr double kFastPoll = 0.6;      // of the sensor's period
constexpr double kSameValue = 0.02;    // of the greater of two values of one timestamp
constexpr double kTroublesApart = 10;  // seconds
constexpr std::size_t kMostCompared = 512;  // samples, of a search for recurrence
constexpr std::size_t kFewestCycles = 3;
constexpr std::size_t kBlock = 256;
constexpr double kFlat = 0.02;  // of the mean: a standard deviation that is noise

bool is_polled(model::SensorKind kind) { return kind != model::SensorKind::kPowerRing; }

}  // namespace

void PowerShape::push(const model::PowerReading& reading) {
  const double at = time_.seconds_of(reading.at);
  const double watts = reading.power.watts();
  if (!std::isfinite(watts) || watts < 0) return;
  if (watts > (limit_ > 0 ? kErrors.most_of_limit * limit_ : kMostOfUnknown)) {
    leave_out(at, "the power sensor showed more than the board can draw; left out");
    return;
  }
  if (watts == 0 && least_shown_ > kNeverZero && std::isfinite(least_shown_)) {
    leave_out(at, "the power sensor showed 0 W of a board that draws power; left out");
    return;
  }
  if (last_read_ && at == *last_read_ &&
      std::abs(watts - last_value_) > kSameValue * std::max(watts, last_value_)) {
    leave_out(at, "the power sensor showed two values at one time; left out");
    drop_contradicted(at);
  }
  if (last_read_ && at <= *last_read_) return;
  if (watts > 0) least_shown_ = std::min(least_shown_, watts);
  last_value_ = watts;

  const auto& traits = sensor_.traits;
  const double lag = traits.lag ? seconds(*traits.lag) : 0.0;
  const double between_reads = last_read_ ? at - *last_read_ : 0.0;
  const bool first = !last_read_;
  last_read_ = at;
  if (frozen_ && watts == last_watts_) return;
  frozen_ = false;
  end_ = at - lag;

  double late = 0;  // the update was between two polls, or the value's age is unknown
  if (is_polled(sensor_.kind) && traits.refresh) {
    const double refresh = seconds(*traits.refresh);
    const bool changed = first || watts != last_watts_;
    // The last one was renewed within half a poll of its end. Polled no faster than it renews, the
    // sensor has a new value each time.
    const double tolerance = between_reads < kFastPoll * refresh ? 0.5 : -0.5;
    const bool renewed =
        samples_.empty() || at - lag - samples_.back().end >= refresh + tolerance * between_reads;
    if (!changed && !renewed) return;
    const double unplaced = std::min(between_reads, refresh);
    unplaced_ = std::max(0.95 * unplaced_, unplaced);
    if (changed || between_reads >= refresh) late = 0.5 * unplaced;
  }
  last_watts_ = watts;
  const double end = at - lag - late - (1 - kLagWindow / 2) * time_constant();
  if (!is_polled(sensor_.kind) && traits.refresh) mend_late_stamps(end);
  add(end - window(), end, watts);
  frozen_ = drop_frozen(watts);
}

void PowerShape::mend_late_stamps(double next_end) {
  const std::size_t count = std::min(samples_.size(), kStampsLookedAt);
  std::array<double, kStampsLookedAt> ends{};
  const auto first = samples_.end() - static_cast<std::ptrdiff_t>(count);
  std::transform(first, samples_.end(), ends.begin(), [](const PowerSample& s) { return s.end; });
  const std::size_t late = analysis::mend_late_stamps(std::span(ends).first(count), next_end,
                                                      seconds(*sensor_.traits.refresh));
  if (late == 0) return;
  const std::vector<PowerSample> again(samples_.end() - static_cast<std::ptrdiff_t>(late),
                                       samples_.end());
  samples_.resize(samples_.size() - late);
  for (std::size_t k = 0; k < late; ++k) {
    const double end = ends[count - late + k];
    add(end - window(), end, again[k].watts);
  }
}

std::vector<bool> PowerShape::doubtful_stamps() const {
  if (is_polled(sensor_.kind) || !sensor_.traits.refresh) return {};
  std::vector<double> ends;
  for (const PowerSample& s : samples_) ends.push_back(s.end);
  return off_turn(ends, seconds(*sensor_.traits.refresh));
}

void PowerShape::leave_out(double at, const char* why) {
  ++left_out_;
  const auto last = std::ranges::find(newest_, why, &Trouble::text);
  if (last == newest_.end()) {
    newest_.push_back({at, why});
  } else {
    if (at - last->at < kTroublesApart) return;
    last->at = at;
  }
  note(at, why);
}

void PowerShape::note(double at, const char* why) {
  troubles_.push_back({at, why});
  last_trouble_ = why;
}

// Removes the sample that the reading at `at` made, if it made one.
void PowerShape::drop_contradicted(double at) {
  const double lag = sensor_.traits.lag ? seconds(*sensor_.traits.lag) : 0.0;
  if (samples_.empty() || !end_ || *end_ != at - lag) return;
  const double end = at - lag - (1 - kLagWindow / 2) * time_constant();
  if (samples_.back().end < end - 1e-9) return;
  samples_.pop_back();
  end_ = samples_.empty() ? std::optional<double>{} : samples_.back().end;
}

// True where `watts`, the newest sample, shows that the sensor is frozen.
bool PowerShape::drop_frozen(double watts) {
  if (samples_.empty()) return false;
  const PowerSample newest = samples_.back();
  const bool repeats = samples_.size() > 1 && samples_[samples_.size() - 2].watts == watts;
  if (!repeats) {
    if (samples_.size() > 1) lowest_ = std::min(lowest_, samples_[samples_.size() - 2].watts);
    ++changes_;
    repeats_ += repeated_;
    repeated_ = 0;
    repeated_since_ = newest.end;
    return false;
  }
  ++repeated_;
  const bool is_usual = changes_ < 20 || 20 * repeats_ > changes_;
  // A board at rest may show one value for as long as it rests.
  const bool rests = watts <= std::max(kRestFactor * lowest_, kRestShare * highest_);
  if (watts > 0 && (is_usual || rests)) return false;
  if (repeated_ < kFrozenSamples || newest.end - repeated_since_ < kFrozen) return false;
  while (!samples_.empty() && samples_.back().end > repeated_since_) samples_.pop_back();
  if (watts == 0 && !samples_.empty()) samples_.pop_back();
  end_ = samples_.empty() ? std::optional<double>{} : samples_.back().end;
  note(repeated_since_, "the power sensor returned one value for seconds; it is not used there");
  repeated_ = 0;
  return true;
}

void PowerShape::add(double begin, double end, double watts) {
  PowerSample next{.begin = begin, .end = end, .watts = watts};
  highest_ = std::max(highest_, watts);
  if (!samples_.empty()) {
    PowerSample& last = samples_.back();
    const double step = next.centre() - last.centre();
    if (step <= 0) return;
    last.until = 0.5 * (last.centre() + next.centre());
    next.joules = last.joules + 0.5 * step * (last.watts + watts);
    if (usual_ == 0) usual_ = step;
    // The first two reads of a sensor whose period is not known may come together.
    const double refresh =
        sensor_.traits.refresh ? seconds(*sensor_.traits.refresh) : kUnknownRefresh;
    next.after_missing = step > kMissingFactor * std::max(usual_, refresh);
    usual_ += 0.05 * (std::min(step, 3 * usual_) - usual_);

    const double unseen = std::clamp(1.0 - window() / step, 0.0, 1.0);
    const double noise = kErrors.sample_noise * watts * step;
    // Between two windows power may have had either level; wrong timestamps shift samples.
    const double between =
        (0.5 * unseen + kErrors.stamp_noise) * step * std::abs(watts - last.watts);
    const double level = step < kLongMissing ? 0.5 * std::max(watts, last.watts) : most_watts();
    const double gap = next.after_missing ? 0.5 * step * level : 0.0;
    next.variance = last.variance + noise * noise + between * between + gap * gap;
    next.locked = last.locked + 0.5 * unseen * step * std::abs(watts - last.watts);
    next.steps = last.steps + std::abs(watts - last.watts);
    next.changes = last.changes + (watts != last.watts ? 1 : 0);
    next.missing = last.missing + (next.after_missing ? std::max(begin - last.end, 0.0) : 0.0);
  }
  next.until = next.centre();
  blocks_.resize(std::min(blocks_.size(), samples_.size() / kBlock));
  samples_.push_back(next);
  add_block();
}

double PowerShape::most_watts() const {
  if (sensor_.provenance == model::Provenance::kEstimated) return highest_;
  return limit_ > 0 ? std::max(limit_, highest_) : 3 * highest_;
}

// Samples are taken away at the end alone, but in forget_before(): add() forgets their blocks.
void PowerShape::add_block() {
  if (samples_.size() < (blocks_.size() + 1) * kBlock) return;
  const auto first = samples_.begin() + static_cast<std::ptrdiff_t>(blocks_.size() * kBlock);
  const auto [low, high] =
      std::ranges::minmax_element(first, first + kBlock, {}, &PowerSample::watts);
  blocks_.emplace_back(low->watts, high->watts);
}

void PowerShape::forget_before(double t) {
  auto keep = std::ranges::lower_bound(samples_, t, {}, &PowerSample::end);
  if (keep != samples_.begin()) --keep;
  samples_.erase(samples_.begin(), keep);
  blocks_.clear();
  while (samples_.size() >= (blocks_.size() + 1) * kBlock) add_block();
}

// The first sample whose centre is after `t`. Samples come at a nearly constant rate, so the search
// begins where that rate says.
std::vector<PowerSample>::const_iterator PowerShape::next_sample(double t) const {
  const auto is_after = [](double at, const PowerSample& s) { return at < s.centre(); };
  const std::size_t count = samples_.size();
  const double first = count > 0 ? samples_.front().centre() : 0;
  const double length = count > 0 ? samples_.back().centre() - first : 0;
  std::size_t low = 0;
  std::size_t high = count;
  if (length > 0) {
    const double part = std::clamp((t - first) / length, 0.0, 1.0);
    low = high = static_cast<std::size_t>(part * static_cast<double>(count - 1));
    for (std::size_t step = 4; low > 0 && is_after(t, samples_[low - 1]); step *= 4) {
      low -= std::min(low, step);
    }
    for (std::size_t step = 4; high < count && !is_after(t, samples_[high]); step *= 4) {
      high += std::min(count - high, step);
    }
  }
  return std::upper_bound(samples_.begin() + static_cast<std::ptrdiff_t>(low),
                          samples_.begin() + static_cast<std::ptrdiff_t>(high), t, is_after);
}

double PowerShape::plain_energy(double t) const {
  const auto next = next_sample(t);
  if (next == samples_.begin()) {
    return next->joules - (next->centre() - t) * next->watts;
  }
  const PowerSample& s = *std::prev(next);
  if (t <= s.until || next == samples_.end()) return s.joules + (t - s.centre()) * s.watts;
  return next->joules - (next->centre() - t) * next->watts;
}

double PowerShape::integral(double from, double to) const {
  return plain_energy(to) - plain_energy(from);
}

std::optional<double> PowerShape::turn(double t) const {
  const auto next = next_sample(t);
  if (next == samples_.begin() || next == samples_.end() || next->after_missing)
    return std::nullopt;
  const double before = std::prev(next)->centre();
  return (t - before) / (next->centre() - before);
}

PowerShape::Range PowerShape::around(double from, double to) const {
  auto first = std::ranges::lower_bound(samples_, from, {}, &PowerSample::end);
  auto last = std::upper_bound(first, samples_.end(), to,
                               [](double at, const PowerSample& s) { return at < s.begin; });
  if (first != samples_.begin()) --first;
  if (last != samples_.end()) ++last;
  return {static_cast<std::size_t>(first - samples_.begin()),
          static_cast<std::size_t>(last - samples_.begin())};
}

double PowerShape::swing(double t) const {
  if (samples_.empty()) return 0;
  // The window of a polled sensor may be as long as its period, where it is not known.
  const bool is_unknown = window() <= 0 && is_polled(sensor_.kind);
  const double reach = is_unknown ? usual_ : 0.5 * window() + 0.5 * usual_;
  const Range r = around(t - reach, t + reach);
  double low = samples_[r.first].watts;
  double high = low;
  for (std::size_t i = r.first; i < r.last; ++i) {
    low = std::min(low, samples_[i].watts);
    high = std::max(high, samples_[i].watts);
  }
  return high - low;
}

double PowerShape::missed_variance(double from, double to) const {
  if (samples_.empty()) return 0;
  const auto at = [this](double t) {
    const auto next = next_sample(t);
    if (next == samples_.end()) {
      // After the last sample, its power is a guess.
      const double beyond = std::max(t - samples_.back().until - 0.5 * usual_, 0.0);
      return samples_.back().variance + std::pow(0.5 * beyond * samples_.back().watts, 2);
    }
    if (next == samples_.begin()) {
      const double beyond = std::max(next->begin - t - 0.5 * usual_, 0.0);
      return next->variance - std::pow(0.5 * beyond * next->watts, 2);
    }
    const PowerSample& a = *std::prev(next);
    return a.variance +
           (next->variance - a.variance) * (t - a.centre()) / (next->centre() - a.centre());
  };
  return std::max(at(to) - at(from), 0.0);
}

// The first lag at which the samples correlate again after they did not, by the autocorrelation of
// the middle of the interval. A load that is locked to the sensor recurs exactly.
PowerShape::Recurrence PowerShape::recurrence_of(double from, double to) const {
  Range r = around(from, to);
  while (r.first < r.last && samples_[r.first].centre() < from) ++r.first;
  while (r.last > r.first && samples_[r.last - 1].centre() > to) --r.last;
  const std::size_t all = r.last - r.first;
  if (all > kMostCompared) r.first += (all - kMostCompared) / 2;
  const std::size_t n = std::min(all, kMostCompared);
  if (n < 4 * kFewestCycles) return {};
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += samples_[r.first + i].watts / static_cast<double>(n);
  std::vector<double> off(n);
  std::vector<double> at(n);
  double square = 0;
  double earliest = 0;  // against samples that come at the usual rate
  double latest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    off[i] = samples_[r.first + i].watts - mean;
    at[i] = samples_[r.first + i].centre();
    square += off[i] * off[i] / static_cast<double>(n);
    const double late = at[i] - at[0] - static_cast<double>(i) * usual_;
    earliest = std::min(earliest, late);
    latest = std::max(latest, late);
  }
  if (square <= std::pow(kFlat * mean, 2)) return {};
  const bool regular = latest - earliest < 0.5 * usual_;
  bool differed = false;
  Recurrence best;
  for (std::size_t lag = 1; lag * kFewestCycles <= n; ++lag) {
    const double apart = static_cast<double>(lag) * usual_;
    double sum = 0;
    double pairs = 0;
    if (regular) {
      for (std::size_t i = lag; i < n; ++i) sum += off[i] * off[i - lag];
      pairs = static_cast<double>(n - lag);
    } else {
      // Pairs of samples by their times, because some samples are missing.
      std::size_t j = 0;
      for (std::size_t i = 1; i < n; ++i) {
        const double wanted = at[i] - apart;
        while (j + 1 < i && at[j + 1] < wanted + 0.5 * usual_) ++j;
        if (std::abs(at[j] - wanted) > 0.5 * usual_) continue;
        sum += off[i] * off[j];
        ++pairs;
      }
    }
    if (pairs < static_cast<double>(2 * kFewestCycles)) continue;
    // Less than chance may cause.
    const double correlation = sum / pairs / square - 1 / std::sqrt(pairs);
    differed = differed || correlation < 0.2;
    if (!differed || correlation <= best.certainty) continue;
    best = {apart, correlation};
  }
  return best;
}

double PowerShape::recurrence(double from, double to) const {
  const Recurrence found = recurrence_of(from, to);
  return found.certainty > kErrors.recurs_from ? found.period : 0;
}

double PowerShape::locked_joules(double from, double to) const {
  if (samples_.size() < 2 || seen_fraction() > 0.98) return 0;
  const auto at = [this](double t) {
    const auto next = next_sample(t);
    if (next == samples_.end()) return samples_.back().locked;
    if (next == samples_.begin()) return next->locked;
    const PowerSample& a = *std::prev(next);
    return a.locked + (next->locked - a.locked) * (t - a.centre()) / (next->centre() - a.centre());
  };
  const double most = at(to) - at(from);
  if (most <= 0) return 0;
  const double part = (recurrence_of(from, to).certainty - kErrors.recurs_from) /
                      (kErrors.recurs_surely - kErrors.recurs_from);
  return kErrors.locked_edges * most * std::clamp(part, 0.0, 1.0);
}

// Of the samples first to last - 1.
double PowerShape::range_of(std::size_t first, std::size_t last) const {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (std::size_t i = first; i < last;) {
    const std::size_t block = i / kBlock;
    if (i % kBlock == 0 && i + kBlock <= last && block < blocks_.size()) {
      low = std::min(low, blocks_[block].first);
      high = std::max(high, blocks_[block].second);
      i += kBlock;
    } else {
      low = std::min(low, samples_[i].watts);
      high = std::max(high, samples_[i].watts);
      ++i;
    }
  }
  return high - low;
}

PowerShape::Variation PowerShape::variation(double from, double to) const {
  Range r = around(from, to);
  while (r.first < r.last && samples_[r.first].begin < from) ++r.first;
  while (r.last > r.first && samples_[r.last - 1].end > to) --r.last;
  if (r.last < r.first + 2) return {};
  const PowerSample& first = samples_[r.first];
  const PowerSample& last = samples_[r.last - 1];
  const double steps = last.steps - first.steps;
  return {range_of(r.first, r.last), steps / static_cast<double>(r.last - r.first - 1),
          steps / std::max(last.changes - first.changes, 1.0)};
}

double PowerShape::missing_seconds(double from, double to) const {
  const Range r = around(from, to);
  if (r.last < r.first + 2) return 0;
  // Of the first and of the last time between samples, a part may lie outside.
  const auto outside = [&](std::size_t i, double length) {
    return std::min(std::max(length, 0.0), samples_[i].missing - samples_[i - 1].missing);
  };
  const std::size_t last = r.last - 1;
  const double sum = samples_[last].missing - samples_[r.first].missing -
                     outside(r.first + 1, from - samples_[r.first].end) -
                     outside(last, samples_[last].begin - to);
  return std::max(sum, 0.0);
}

double PowerShape::seen_fraction() const {
  if (usual_ <= 0) return 1;
  return std::min(window() / usual_, 1.0);
}

bool PowerShape::is_sharp() const {
  return window() > 0 && window() <= 0.1001 && usual_ > 0 && usual_ <= 0.15 &&
         sensor_.kind != model::SensorKind::kPowerAverage;
}

}  // namespace jouleprof::analysis
