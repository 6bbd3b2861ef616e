#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "analysis/timeline/sensors/error_model.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// In seconds.
constexpr double kInterval = 60;       // solved at once
constexpr double kLongInterval = 600;  // with rare anchors
constexpr double kUnsettled = 3;       // new readings may change the last part
constexpr double kSilence = 30;  // without readings; the timeline then does not wait for a sensor
constexpr Duration kSlowRead = 1s;

Energy scaled_energy(Energy energy, double factor) {
  constexpr long double kMost = 4e18L;  // beyond, it is no value
  const long double joules = static_cast<long double>(energy.microjoules()) * factor;
  return Energy::microjoules(std::llround(std::clamp(joules, -kMost, kMost)));
}

}  // namespace

EnergyTimeline::EnergyTimeline(TimelineSensors sensors) : sensors_(std::move(sensors)) {
  if (sensors_.counter) factor_ = sensors_.counter->traits.correction;
  forget_counter();
}

// As before its first reading.
void EnergyTimeline::forget_counter() {
  points_.clear();
  unchanged_from_ = 0;
  frozen_segments_ = 0;
  frozen_ = false;
  counter_period_ = {};
  reads_ = {};
  phase_.reset();
  tail_phase_.reset();
  segment_.reset();
  next_segment_ = 0;
  offset_ = 0;
  anchors_.clear();
  settled_anchors_ = 0;
  knots_.clear();
  settled_ = 0;
  scale_ = {};
  if (!sensors_.counter) return unwrapper_.reset();
  model::SensorTraits traits = sensors_.counter->traits;
  if (traits.wrap) traits.wrap = scaled_energy(*traits.wrap, factor_);
  traits.quantum = scaled_energy(traits.quantum, factor_);
  unwrapper_.emplace(traits);
}

void EnergyTimeline::check_unit() {
  using enum UnitVerdict::State;
  if (!sensors_.counter || !shape_ || unit_.verdict().state != kUnverified) return;
  if (shape_->samples().size() < 3) return;
  const auto verdict = unit_.judge(*shape_, *time_, *sensors_.counter,
                                   [this](double a, double b) { return unseen_energy(a, b); });
  if (verdict.state == kUnverified) return;
  const auto readings = unit_.take_readings();
  if (verdict.state == kAgrees) return;
  std::erase_if(notes_, [](const Note& note) {
    return note.text.find("energy counter") != std::string::npos;
  });
  add_note({readings.front().before, verdict.reason, HostTime::max()});
  if (verdict.state == kRefused) sensors_.counter.reset();
  factor_ *= verdict.factor;
  forget_counter();
  for (const auto& reading : readings) take(reading);
  dirty_ = true;
}

const UnitVerdict& EnergyTimeline::unit() {
  refresh();
  return unit_.verdict();
}

void EnergyTimeline::note_origin(HostTime t) {
  if (!time_) time_ = TimeBase{t};
}

void EnergyTimeline::append(const model::PowerReading& reading) {
  const bool of_average = sensors_.average && reading.sensor == sensors_.average->id;
  if (!of_average && (!sensors_.power || reading.sensor != sensors_.power->id)) return;
  note_origin(reading.at);
  auto& shape = of_average ? average_ : shape_;
  if (!shape) shape.emplace(of_average ? *sensors_.average : *sensors_.power, *time_);
  if (limit_watts_ > 0) shape->set_limit(limit_watts_);
  const double correction = shape->sensor().traits.correction;
  if (correction == 1) {
    shape->push(reading);
  } else {
    shape->push({reading.sensor, reading.at, reading.power * correction});
  }
  for (const auto& trouble : shape->take_troubles()) {
    if (!of_average) add_note({time_->host_of(trouble.at), trouble.text});
  }
  dirty_ = true;
}

void EnergyTimeline::append(const model::GaugeReading& reading) {
  if (reading.sensor == sensors_.limit && std::isfinite(reading.value)) {
    limit_watts_ = std::max(limit_watts_, reading.value);
  }
  if (reading.sensor == sensors_.utilisation && reading.value >= 0 && reading.value <= 1) {
    note_origin(reading.at);
    utilisations_.emplace_back(time_->seconds_of(reading.at), reading.value);
  }
}

void EnergyTimeline::append(const model::CounterReading& reading) {
  if (!sensors_.counter || reading.sensor != sensors_.counter->id) return;
  note_origin(reading.before);
  if (sensors_.power && unit_.verdict().state == UnitVerdict::State::kUnverified) {
    if (!is_no_value(reading.total) && reading.after - reading.before <= kSlowRead) {
      unit_.see(reading);
    }
    constexpr std::size_t kJudged = 512;
    take(reading);
    if (unit_.pending() % kJudged == 0) check_unit();
    return;
  }
  take(reading);
}

void EnergyTimeline::take(const model::CounterReading& raw) {
  if (!sensors_.counter) return;
  model::CounterReading reading = raw;
  if (factor_ != 1 && !is_no_value(raw.total)) reading.total = scaled_energy(raw.total, factor_);
  if (reading.after - reading.before > kSlowRead) {
    add_note({reading.before, "a read of the energy counter took more than a second; dropped"});
    return;
  }
  if (reads_.count++ == 0) reads_.begin = reads_.moved = reading.before;
  if (reads_.count > 1 && reading.total != reads_.value) reads_.moved = reading.before;
  reads_.newest = reading.before;
  reads_.value = reading.total;
  const std::size_t old_size = points_.size();
  learn_period(reading);
  if (limit_watts_ > 0) unwrapper_->set_limit(Power::watts(limit_watts_));
  unwrapper_->push(reading, points_);
  // The unwrapper may have replaced its last point.
  const std::size_t first_new = std::min(old_size, points_.empty() ? 0 : points_.size() - 1);
  for (Note& note : unwrapper_->take_notes()) add_note(std::move(note));
  drop_frozen(first_new);
  dirty_ = true;
}

void EnergyTimeline::append(const model::Readings& readings) {
  for (const auto& r : readings.gauges) append(r);
  for (const auto& r : readings.powers) append(r);
  for (const auto& r : readings.counters) append(r);
  for (const auto& f : readings.failures) append(f);
}

void EnergyTimeline::append(const model::ReadFailure& failure) {
  const auto note = [&failure](const std::optional<model::Sensor>& sensor, HostTime& failed) {
    if (sensor && sensor->id == failure.sensor) failed = std::max(failed, failure.at);
  };
  note(sensors_.counter, failed_counter_);
  note(sensors_.power, failed_power_);
}

// A sensor that fails at every read gives one note of each text, not one of each read.
void EnergyTimeline::add_note(Note note) {
  const auto same = std::ranges::find(notes_, note.text, &Note::text);
  if (same == notes_.end()) {
    notes_.push_back(std::move(note));
    return;
  }
  same->last = std::max(same->last, note.last);
  ++same->count;
}

void EnergyTimeline::mark(HostTime t) {
  note_origin(t);
  const double at = time_->seconds_of(t);
  const auto place = std::ranges::lower_bound(marks_, at);
  if (place != marks_.end() && *place == at) return;
  marks_.insert(place, at);
  dirty_ = true;
}

void EnergyTimeline::set_work(HostTime begin, HostTime end) {
  mark(begin);
  mark(end);
  work_ = {time_->seconds_of(begin), time_->seconds_of(end)};
}

void EnergyTimeline::forget_before(HostTime t) {
  refresh();
  if (!time_) return;
  // One second more, for windows that began before.
  const double at = time_->seconds_of(t) - 1.0;
  std::size_t n = 0;
  while (n + 2 < settled_ && knots_[n + 1].at < at) ++n;
  knots_.erase(knots_.begin(), knots_.begin() + static_cast<std::ptrdiff_t>(n));
  settled_ -= n;
  n = 0;
  while (n + 2 < settled_anchors_ && anchors_[n + 1].anchor.at < at) ++n;
  anchors_.erase(anchors_.begin(), anchors_.begin() + static_cast<std::ptrdiff_t>(n));
  settled_anchors_ -= n;
  const double settled_end = settled_ > 0 ? knots_[settled_ - 1].at : 0.0;
  const double raw = std::min(at, settled_end - 15);
  n = 0;
  while (n + 1 < points_.size() && time_->seconds_of(points_[n + 1].after) < raw) ++n;
  points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(n));
  unchanged_from_ -= std::min(unchanged_from_, n);
  if (shape_) shape_->forget_before(std::min(at, settled_end - 1));
  if (average_) average_->forget_before(std::min(at, settled_end - 2));
  const auto used =
      std::ranges::partition_point(utilisations_, [&](const auto& u) { return u.first < at; });
  utilisations_.erase(utilisations_.begin(), used);
  marks_.erase(marks_.begin(), std::ranges::lower_bound(marks_, at));
  std::erase_if(notes_, [t](const Note& note) { return note.last < t; });
}

double EnergyTimeline::data_end() const {
  double end = -1e300;
  if (shape_ && shape_->end()) end = *shape_->end();
  if (const std::size_t known = known_points(); known > 0) {
    end = std::max(end, time_->seconds_of(points_[known - 1].after));
  }
  return end;
}

// The time of the first reading that ends after `t`; the end of the data where there is none.
double EnergyTimeline::next_data(double t) const {
  double next = data_end();
  if (has_samples()) {
    const auto& samples = shape_->samples();
    const auto s =
        std::ranges::partition_point(samples, [&](const PowerSample& x) { return x.end <= t; });
    if (s != samples.end()) next = std::min(next, std::max(s->begin, t));
  }
  const auto p = std::ranges::partition_point(
      points_, [&](const auto& x) { return time_->seconds_of(x.after) <= t; });
  if (p != points_.end()) next = std::min(next, std::max(time_->seconds_of(p->before), t));
  return next;
}

void EnergyTimeline::refresh() {
  if (!dirty_) return;
  check_unit();
  dirty_ = false;
  if (!has_samples() && points_.empty()) return;
  knots_.resize(settled_);
  anchors_.resize(settled_anchors_);
  while (true) {
    double start = settled_ > 0 ? knots_[settled_ - 1].at : -1e300;
    if (settled_ == 0) {
      start = 1e300;
      if (has_samples()) start = shape_->samples().front().begin;
      if (!points_.empty()) start = std::min(start, time_->seconds_of(points_.front().before));
    }
    const double end = data_end();
    double stop = std::min(end, start + kInterval);
    // An interval ends at an anchor, if there is one, and with its segment. It is longer where it
    // would have no data: time without readings costs nothing.
    bool split = false;
    const auto next = std::ranges::partition_point(
        points_, [&](const auto& p) { return time_->seconds_of(p.before) <= start; });
    if (next != points_.end()) {
      const double at = time_->seconds_of(next->after) + 2 * kUnsettled;
      if (at > stop && at < start + kLongInterval) stop = std::min(end, at);
    }
    const double data = next_data(start + 2 * kUnsettled) + 2 * kUnsettled;
    if (data > stop) stop = std::min(end, data);
    const std::uint32_t current = segment_.value_or(next_segment_);
    const auto change =
        std::ranges::partition_point(points_, [&](const auto& p) { return p.segment <= current; });
    if (change != points_.end() && change != points_.begin()) {
      const double at = time_->seconds_of(change->before) - 1e-3;
      if (at <= start) {
        begin_segment(change->segment);
        continue;
      }
      if (at < stop) stop = at, split = true;
    }
    solve(stop);
    if (split) {
      settle(stop);
      begin_segment(change->segment);
      continue;
    }
    const bool last = stop >= end;
    double limit = stop - kUnsettled;
    // Wait for the later one of both sensors, unless its readings have stopped.
    const auto wait = [&](double newest) {
      if (stop - newest < kSilence) limit = std::min(limit, newest - kUnsettled);
    };
    if (shape_ && shape_->end()) wait(*shape_->end());
    if (!anchors_.empty()) wait(anchors_.back().anchor.at + 2.0);
    if (last) {
      if (end - start > 4 * kUnsettled) settle(limit);
      return;
    }
    const std::size_t before = settled_;
    settle(limit);
    if (settled_ == before) settle(stop);
    if (settled_ == before) return;
    knots_.resize(settled_);
    anchors_.resize(settled_anchors_);
  }
}

// The counter restarted: its offset to the timeline and its update times are unknown.
void EnergyTimeline::begin_segment(std::uint32_t segment) {
  next_segment_ = segment;
  segment_.reset();
  phase_.reset();
  tail_phase_.reset();
}

void EnergyTimeline::settle(double limit) {
  const auto knot =
      std::ranges::partition_point(knots_, [&](const Knot& k) { return k.at <= limit; });
  settled_ = std::max(settled_, static_cast<std::size_t>(knot - knots_.begin()));
  if (settled_ == 0) return;
  const double end = knots_[settled_ - 1].at;
  const auto anchor =
      std::ranges::partition_point(anchors_, [&](const Placed& a) { return a.anchor.at <= end; });
  settled_anchors_ =
      std::max(settled_anchors_, static_cast<std::size_t>(anchor - anchors_.begin()));
  phase_ = tail_phase_;
}

void EnergyTimeline::place_anchors(double stop) {
  anchors_.resize(settled_anchors_);
  if (points_.empty()) return;
  const double start = settled_ > 0 ? knots_[settled_ - 1].at : -1e300;
  const std::uint32_t segment = segment_.value_or(next_segment_);
  // Reads of the ten seconds before the start determine the counter's value there.
  const auto first = std::ranges::partition_point(points_, [&](const auto& p) {
    return p.segment < segment || (p.segment == segment && time_->seconds_of(p.after) < start - 10);
  });
  const auto known = std::max(first, points_.begin() + static_cast<std::ptrdiff_t>(known_points()));
  const auto last = std::partition_point(first, known, [&](const auto& p) {
    return p.segment == segment && time_->seconds_of(p.after) <= stop + 1e-9;
  });
  if (first == last) return;
  const auto placed =
      place_counter({&*first, static_cast<std::size_t>(last - first)}, sensors_.counter->traits,
                    shape_ ? &*shape_ : nullptr, phase_, *time_);
  tail_phase_ = placed.phase;
  if (placed.anchors.empty()) return;
  if (!segment_) {
    // The counter's offset to the timeline, from the samples since the settled end.
    const Anchor& a = placed.anchors.front();
    double at_anchor = 0;
    if (settled_ > 0) {
      const double from = knots_[settled_ - 1].at;
      at_anchor = knots_[settled_ - 1].joules;
      if (a.at > from) {
        at_anchor += has_samples() ? shape_->integral(from, a.at) : power_at(from) * (a.at - from);
      }
    }
    offset_ = at_anchor - a.joules;
    segment_ = segment;
  }
  const double newest = anchors_.empty() ? -1e300 : anchors_.back().anchor.at;
  for (const Anchor& a : placed.anchors) {
    if (a.at > std::max(newest + 1e-4, start)) anchors_.push_back({a, a.joules + offset_});
  }
}

void EnergyTimeline::solve(double stop) {
  knots_.resize(settled_);
  place_anchors(stop);
  double start = 0;
  if (settled_ > 0) {
    start = knots_[settled_ - 1].at;
  } else {
    start = 1e300;
    if (has_samples()) start = shape_->samples().front().begin;
    if (!anchors_.empty()) start = std::min(start, anchors_.front().anchor.at);
    if (start > 1e299) return;
  }
  double end = -1e300;
  if (shape_ && shape_->end()) end = std::min(*shape_->end(), stop);
  if (!anchors_.empty()) end = std::max(end, anchors_.back().anchor.at);
  if (end <= start + 1e-6) return;
  scale_ = scale_of_samples(stop);
  find_doubts();
  std::vector<Knot> fresh = uses_fit() ? fit(start, end) : scale(start, end);
  knots_.insert(knots_.end(), fresh.begin(), fresh.end());
}

std::optional<TimelineSensors> choose_sensors(const std::vector<model::Sensor>& sensors,
                                              model::DomainId domain,
                                              const std::vector<bool>& has_readings) {
  using model::SensorKind;
  const auto first = [&](SensorKind kind, bool measured_only) -> std::optional<model::Sensor> {
    for (std::size_t i = 0; i < sensors.size(); ++i) {
      const auto& s = sensors[i];
      if (s.domain != domain || s.kind != kind || !has_readings[i]) continue;
      if (measured_only && s.provenance == model::Provenance::kEstimated) continue;
      return s;
    }
    return std::nullopt;
  };
  TimelineSensors out;
  out.counter = first(SensorKind::kEnergyCounter, true);
  const bool measured = out.counter.has_value();
  if (!measured) out.counter = first(SensorKind::kEnergyCounter, false);
  for (const bool measured_only : {true, false}) {
    for (const auto kind :
         {SensorKind::kPowerRing, SensorKind::kPowerInstant, SensorKind::kPowerAverage}) {
      if (!out.power) out.power = first(kind, measured_only || measured);
    }
  }
  if (out.power && !measured && out.power->provenance != model::Provenance::kEstimated) {
    out.counter.reset();  // an estimated counter adds nothing to measured power
  }
  if (!out.counter && !out.power) return std::nullopt;
  if (out.power && out.power->kind != SensorKind::kPowerAverage) {
    out.average = first(SensorKind::kPowerAverage, true);
    if (out.average && !out.average->traits.window) out.average.reset();
  }
  const auto gauge = [&](std::string_view name) -> std::optional<model::SensorId> {
    const auto s = std::ranges::find_if(sensors, [&](const model::Sensor& x) {
      return x.domain == domain && x.kind == SensorKind::kGauge && x.name == name;
    });
    return s == sensors.end() ? std::nullopt : std::optional(s->id);
  };
  out.limit = gauge(model::gauge::kPowerLimit);
  out.utilisation = gauge(model::gauge::kGpuUtilisation);
  return out;
}

}  // namespace jouleprof::analysis
