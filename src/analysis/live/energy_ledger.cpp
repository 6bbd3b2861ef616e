#include "analysis/live/energy_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCoarseStep = 1s;
constexpr Duration kBendStep = 20ms;
constexpr std::size_t kMostReported = 100'000;
constexpr Duration kQuickUpdates = 500ms;
constexpr Duration kLateUpdate = 20ms;  // seen up to 16 ms after it was due

}  // namespace

EnergyLedger::EnergyLedger(TimelineSensors sensors, Duration history, std::size_t most_coarse)
    : timeline_(std::move(sensors)), history_(history), most_coarse_(most_coarse) {}

void EnergyLedger::append(const model::Readings& readings) {
  const auto& sensors = timeline_.sensors();
  timeline_.append(readings);
  for (const auto& r : readings.powers) {
    if (!sensors.power || r.sensor != sensors.power->id) continue;
    newest_ = std::max(newest_, r.at);
  }
  for (const auto& r : readings.counters) {
    if (!sensors.counter || r.sensor != sensors.counter->id) continue;
    newest_counter_ = std::max(newest_counter_, r.before);
    last_counter_ = r;
    newest_ = std::max(newest_, r.after);
  }
}

std::optional<Energy> EnergyLedger::counter_at(HostTime t) {
  const auto extent = timeline_.extent();
  if (!last_counter_ || !extent) return std::nullopt;
  // The reading shows its counter's last update, and so do the timeline's last energies.
  const HostTime shown = std::min(last_counter_->before, extent->end);
  const auto between = timeline_.energy(std::min(t, shown), std::max(t, shown));
  if (!between) return std::nullopt;
  return shown < t ? last_counter_->total + between->energy
                   : last_counter_->total - between->energy;
}

Duration EnergyLedger::delay() const {
  const auto& counter = timeline_.sensors().counter;
  if (!counter || counter->traits.refresh.value_or(0s) > kQuickUpdates) return 30ms;
  return std::max(counter->traits.refresh.value_or(0s) + kLateUpdate, Duration{30ms});
}

HostTime EnergyLedger::reached() const {
  if (!timeline_.sensors().counter) return newest_;
  return std::min(newest_, newest_counter_ - (delay() - kLateUpdate));
}

bool EnergyLedger::knows(HostTime t) {
  if (reached() < t) return false;
  const auto extent = timeline_.extent();
  if (extent && extent->end >= t) return true;
  // A sensor that stands still does not show what was used up to `t`, however long one waits.
  if (!timeline_.sensors().counter) return extent && timeline_.has_frozen_power();
  return timeline_.counter_stands_still();
}

std::optional<EnergyTimeline::Extent> EnergyLedger::known() {
  const auto extent = timeline_.extent();
  if (!extent) return std::nullopt;
  const HostTime begin = coarse_.empty() ? extent->begin : coarse_.front().at;
  const HostTime end = std::min(reached(), extent->end);
  if (end < begin) return std::nullopt;
  return EnergyTimeline::Extent{begin, end};
}

void EnergyLedger::follow_origin() {
  if (!origin_ || origin_settled_) return;
  if (const auto raw = timeline_.up_to(*origin_)) shift_ = -*raw;
  const auto settled = timeline_.settled_until();
  origin_settled_ = settled && *settled >= *origin_;
}

Energy EnergyLedger::between_reported(HostTime t, Energy energy) const {
  const auto next = reported_.lower_bound(t);
  if (next != reported_.end()) energy = std::min(energy, next->second);
  if (next != reported_.begin()) energy = std::max(energy, std::prev(next)->second);
  return energy;
}

std::optional<Energy> EnergyLedger::value(HostTime t, Reported reported) {
  const auto known = reported_.find(t);
  if (known != reported_.end()) return known->second;
  if (!origin_) origin_ = t;
  follow_origin();
  const auto raw = timeline_.up_to(t);
  if (!raw) return std::nullopt;
  const Energy energy = between_reported(t, *raw + shift_);
  if (reported == Reported::kRemembered) reported_.emplace(t, energy);
  return energy;
}

Result<model::Measurement> EnergyLedger::energy(HostTime begin, HostTime end) {
  return measure(begin, end, Reported::kRemembered);
}

Result<model::Measurement> EnergyLedger::settled_energy(HostTime begin, HostTime end) {
  return measure(begin, end, Reported::kPassing);
}

Result<model::Measurement> EnergyLedger::measure(HostTime begin, HostTime end, Reported reported) {
  if (end >= begin && !coarse_.empty() && begin < coarse_.back().at) {
    return energy_since_long_ago(begin, end, reported);
  }
  auto m = timeline_.energy(begin, end);
  if (!m) return m;
  const auto from = value(begin, reported);
  const auto to = value(end, reported);
  if (!from || !to) return fail(Errc::kInternal, "a window that is known at one end only");
  const Energy moved = *to - *from - m->energy;
  m->energy = *to - *from;
  m->repeatability =
      Energy::joules(std::hypot(m->repeatability.joules(), kErrors.normal95 * moved.joules()));
  m->error = Energy::joules(std::hypot(m->error.joules(), kErrors.normal95 * moved.joules()));
  return m;
}

Result<model::Measurement> EnergyLedger::energy_since_long_ago(HostTime begin, HostTime end,
                                                               Reported reported) {
  if (begin < coarse_.front().at) {
    return fail(Errc::kUnavailable,
                fmt::format("readings of {} begin {:.3f} s after the start of the window",
                            timeline_.sensor_name(), seconds(coarse_.front().at - begin)));
  }
  const auto extent = timeline_.extent();
  if (!extent) return fail(Errc::kUnavailable, "no readings lately");
  // The end's part of the interval; of the begin it knows nothing.
  auto m = timeline_.energy(std::min(std::max(extent->begin, end - 10s), end), end);
  if (!m) return m;
  const auto next = std::ranges::upper_bound(coarse_, begin, {}, &Point::at);
  const Point& before = *std::prev(next);
  const auto known = reported_.find(begin);
  Energy from = before.energy;
  Energy doubt;
  if (known != reported_.end()) {
    from = known->second;
  } else if (begin > before.at) {
    const Power power = (next->energy - before.energy) / (next->at - before.at);
    from = between_reported(begin, before.energy + power * (begin - before.at));
    doubt = next->bend;
  }
  const auto to = value(end, reported);
  if (!to) return fail(Errc::kUnavailable, "readings end before the window does");
  const double gain = m->energy > Energy{} ? model::gain_joules(*m) / m->energy.joules() : 0.0;
  m->energy = *to - from;
  m->repeatability += doubt;
  m->error = Energy::joules(std::hypot(m->repeatability.joules(), gain * m->energy.joules()));
  return m;
}

Energy EnergyLedger::bend_between(const Point& from, const Point& to) {
  Energy most;
  const Power mean = (to.energy - from.energy) / (to.at - from.at);
  for (HostTime t = from.at + kBendStep; t < to.at; t += kBendStep) {
    const auto raw = timeline_.up_to(t);
    if (!raw) continue;
    const Energy off = *raw + shift_ - (from.energy + mean * (t - from.at));
    most = std::max(most, off < Energy{} ? -off : off);
  }
  return most;
}

void EnergyLedger::tidy(HostTime now) {
  const auto extent = timeline_.extent();
  const auto settled = timeline_.settled_until();
  if (!extent || !settled) return;
  if (!origin_) origin_ = extent->begin;
  follow_origin();
  if (!origin_settled_) return;
  // Coarse points first, then the details go.
  const HostTime limit = std::min(now - history_, *settled - 20s);
  if (extent->begin + 30s > limit) return;
  for (HostTime t = coarse_.empty() ? extent->begin : coarse_.back().at + kCoarseStep; t <= limit;
       t += kCoarseStep) {
    const auto raw = timeline_.up_to(t);
    if (!raw) continue;
    Point next{t, between_reported(t, *raw + shift_), {}};
    if (!coarse_.empty()) next.bend = bend_between(coarse_.back(), next);
    coarse_.push_back(next);
  }
  if (coarse_.size() < 2) return;
  timeline_.forget_before(coarse_.back().at);
  while (coarse_.size() > most_coarse_) thin_coarse();
  while (reported_.size() > kMostReported) reported_.erase(reported_.begin());
}

// Every second point of the older half goes. From the line between its neighbours the energy strays
// by at most how far the point itself lies from that line, and what it strayed from the lines to
// it.
void EnergyLedger::thin_coarse() {
  std::vector<Point> kept;
  const std::size_t half = coarse_.size() / 2;
  kept.reserve(coarse_.size());
  kept.push_back(coarse_.front());
  std::size_t i = 1;
  for (; i + 1 < half; i += 2) {
    const Point& gone = coarse_[i];
    Point next = coarse_[i + 1];
    const Point& before = kept.back();
    const Power mean = (next.energy - before.energy) / (next.at - before.at);
    const Energy off = gone.energy - (before.energy + mean * (gone.at - before.at));
    next.bend = (off < Energy{} ? -off : off) + std::max(gone.bend, next.bend);
    kept.push_back(next);
  }
  kept.insert(kept.end(), coarse_.begin() + static_cast<std::ptrdiff_t>(i), coarse_.end());
  coarse_ = std::move(kept);
}

void EnergyLedger::forget_before(HostTime t) {
  // One point of each stays, so that what follows is still bound by it.
  const auto point = std::ranges::upper_bound(coarse_, t, {}, &Point::at);
  if (point - coarse_.begin() > 1) coarse_.erase(coarse_.begin(), std::prev(point));
  const auto reported = reported_.upper_bound(t);
  if (reported != reported_.begin()) reported_.erase(reported_.begin(), std::prev(reported));
}

}  // namespace jouleprof::analysis
