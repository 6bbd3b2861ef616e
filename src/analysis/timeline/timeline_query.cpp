#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// --- The queries of an EnergyTimeline ---

constexpr double kRoomLagged = 0.3;
constexpr double kSilence = 60;         // seconds without a reading
constexpr double kReachOfFailed = 0.1;  // seconds beyond the last reading of a lost device
constexpr double kHidesPeak = 0.5;      // seconds without samples

}  // namespace

std::optional<EnergyTimeline::Extent> EnergyTimeline::extent() {
  refresh();
  if (knots_.size() < 2) return std::nullopt;
  return Extent{time_->host_of(knots_.front().at), time_->host_of(knots_.back().at)};
}

std::vector<EnergyTimeline::Placed>::const_iterator EnergyTimeline::next_anchor(double t) const {
  return std::upper_bound(anchors_.begin(), anchors_.end(), t,
                          [](double at, const Placed& p) { return at < p.anchor.at; });
}

// How far beyond the data power is taken to go on.
double EnergyTimeline::reach() { return 3 * seconds(resolution()); }

// The latest end of a window. A sensor whose reads fail since its last reading says nothing of the
// time after that.
double EnergyTimeline::last_at() {
  const HostTime failed = has_samples() ? failed_power_ : failed_counter_;
  const double end = knots_.back().at;
  const bool has_failed = failed != HostTime{} && time_->seconds_of(failed) >= end;
  return end + (has_failed ? std::min(reach(), kReachOfFailed) : reach());
}

// Power is constant beyond either end.
std::vector<EnergyTimeline::Knot>::const_iterator EnergyTimeline::next_knot(double t) const {
  const auto next = std::ranges::upper_bound(knots_, t, {}, &Knot::at);
  return std::clamp(next, knots_.begin() + 1, knots_.end() - 1);
}

double EnergyTimeline::joules_at(double t) const {
  const auto next = next_knot(t);
  const Knot& a = *std::prev(next);
  const Knot& b = *next;
  return b.at > a.at ? a.joules + (b.joules - a.joules) * ((t - a.at) / (b.at - a.at)) : a.joules;
}

double EnergyTimeline::power_at(double t) const {
  if (knots_.size() < 2) return 0;
  const auto next = next_knot(t);
  const double length = next->at - std::prev(next)->at;
  return length > 0 ? (next->joules - std::prev(next)->joules) / length : 0;
}

Energy EnergyTimeline::cumulative(HostTime t) const {
  return Energy::joules(joules_at(time_->seconds_of(t)));
}

bool EnergyTimeline::is_marked(double t) const {
  const auto mark = std::ranges::lower_bound(marks_, t - 1e-6);
  return mark != marks_.end() && *mark <= t + 1e-6;
}

// A mark without another one close to it: between close marks, noise would pass for a level.
bool EnergyTimeline::is_edge(double t) const {
  if (!is_marked(t)) return false;
  const double room = (shape_->time_constant() > 0 ? kRoomLagged : 0.8) * shape_->window();
  const auto after = std::ranges::upper_bound(marks_, t + 1e-6);
  const auto here = std::ranges::lower_bound(marks_, t - 1e-6);
  return (after == marks_.end() || *after - t > room) &&
         (here == marks_.begin() || t - *std::prev(here) > room);
}

Result<model::Measurement> EnergyTimeline::energy(HostTime begin, HostTime end) {
  if (end < begin) {
    return fail(Errc::kInvalidArgument, "the window ends before it begins");
  }
  refresh();
  if (knots_.size() < 2) return fail(Errc::kUnavailable, without_curve());
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  if (a < knots_.front().at - reach() || b > last_at()) {
    const bool early = a < knots_.front().at - reach();
    return fail(
        Errc::kUnavailable,
        fmt::format("readings of {} {} {:.3f} s {} the window{}", sensor_name(),
                    early ? "begin" : "end", early ? knots_.front().at - a : b - knots_.back().at,
                    early ? "after the start of" : "before the end of",
                    !early && (frozen_ || may_catch_up()) ? ": the counter stands still" : ""));
  }
  if (!has_samples() && reads_.have_one_value()) {
    return fail(Errc::kUnavailable, still_counter());
  }
  if (is_all_zero()) return fail(Errc::kUnavailable, without_curve());
  const Coverage covered = coverage(a, b);
  if (covered.unknown_seconds > 0.5 * (b - a) && covered.unknown_seconds > 1) {
    return fail(Errc::kUnavailable,
                fmt::format("no usable readings of {} for {:.3f} s of a window of {:.3f} s",
                            sensor_name(), covered.unknown_seconds, b - a));
  }
  model::Measurement m;
  m.energy = cumulative(end) - cumulative(begin);
  m.repeatability = Energy::joules(kErrors.normal95 * sigma(a, b));
  const double joules = m.energy.joules();
  const model::ScaleError& of_sensor = sensor_scale();
  m.offset = of_sensor.offset_half() * (end - begin);
  m.error = Energy::joules(
      std::hypot(m.repeatability.joules(), of_sensor.gain_half() * joules, m.offset.joules()));
  m.shift = of_sensor.gain_shift();
  if (joules > 0) m.shift += (of_sensor.offset_shift() * (end - begin)).joules() / joules;
  const Energy doubt =
      Energy::joules(doubt_at(b) - doubt_at(a) + hidden_in_samples(a, b, covered) + unplaced(a, b));
  m.repeatability += doubt;
  m.error += doubt + Energy::joules(contradiction(a, b));
  m.provenance = provenance();
  m.sensor = sensor_name();
  m.method = method();
  return m;
}

// Why readings that there are give no energy.
std::string EnergyTimeline::still_counter() const {
  return fmt::format(
      "{} stands still at {:.6g} J over {} reads in {:.3g} s: the machine is a guest, the sensor "
      "is "
      "stuck, or it is renewed more rarely",
      sensors_.counter->name, reads_.value.joules(), reads_.count,
      seconds(reads_.newest - reads_.begin));
}

// A part of a board that is in use never draws 0 W all the time; its sensor may show it.
bool EnergyTimeline::is_all_zero() const {
  return shape_ && !sensors_.counter && shape_->highest_watts() == 0 && shape_->left_out() == 0 &&
         (has_samples() || shape_->last_trouble());
}

std::string EnergyTimeline::without_curve() const {
  if (is_all_zero()) {
    return fmt::format(
        "{} showed 0 W at every reading: the part is switched off, another sensor holds its power "
        "(as the first die's of an MI250 holds the second's), or the sensor is stuck",
        sensors_.power->name);
  }
  if (!has_samples() && reads_.have_one_value()) return still_counter();
  if (reads_.count == 1 && !has_samples()) {
    return fmt::format("{} was read once; an energy needs two reads", sensors_.counter->name);
  }
  if (shape_ && shape_->left_out() > 0) {
    return fmt::format("{} readings of {} were left out: {}", shape_->left_out(),
                       sensors_.power->name, shape_->last_trouble());
  }
  if (shape_ && shape_->last_trouble()) {
    return fmt::format("{}: {}", sensors_.power->name, shape_->last_trouble());
  }
  if (shape_)
    return fmt::format("{} was read once; an energy needs two reads", sensors_.power->name);
  return fmt::format("no readings of {}", sensor_name());
}

std::optional<Energy> EnergyTimeline::up_to(HostTime t) {
  refresh();
  if (knots_.size() < 2 || is_all_zero()) return std::nullopt;
  const double at = time_->seconds_of(t);
  if (at < knots_.front().at - reach() || at > last_at()) return std::nullopt;
  return cumulative(t);
}

std::optional<HostTime> EnergyTimeline::settled_until() {
  refresh();
  if (settled_ == 0) return std::nullopt;
  return time_->host_of(knots_[settled_ - 1].at);
}

std::vector<model::PowerStep> EnergyTimeline::curve(HostTime begin, HostTime end, Duration step,
                                                    model::StepErrors errors) {
  std::vector<model::PowerStep> out;
  const auto known = extent();
  if (!known || step <= Duration{}) return out;
  // Steps begin at whole multiples of `step`. Time without readings has none.
  const auto skip_to = [&](HostTime from, HostTime to) {
    return to <= from ? from : from + step * ((to - from) / step);
  };
  Energy reached;  // at the end of the last step
  for (HostTime t = skip_to(begin, known->begin); t < std::min(end, known->end); t += step) {
    const HostTime next = std::min(t + step, end);
    if (t < known->begin || next > known->end) continue;
    const double ahead = next_data(time_->seconds_of(t));
    if (ahead > time_->seconds_of(next) + kSilence) {
      t = skip_to(t, time_->host_of(ahead - 1));
      continue;
    }
    const Energy before = !out.empty() && out.back().end == t ? reached : cumulative(t);
    reached = cumulative(next);
    auto& made = out.emplace_back();
    made = {t, next, (reached - before) / (next - t), {}};
    if (errors == model::StepErrors::kLeftOut) continue;
    if (const auto measured = energy(t, next)) made.error = measured->repeatability / (next - t);
  }
  return out;
}

std::optional<EnergyTimeline::Peak> EnergyTimeline::peak(HostTime begin, HostTime end) {
  refresh();
  if (!time_) return std::nullopt;
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  Peak best;
  bool any = false;
  if (shape_) {
    const auto& samples = shape_->samples();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto& s = samples[i];
      if (i > 0 && s.missing - samples[i - 1].missing > kHidesPeak && s.begin > a &&
          samples[i - 1].end < b) {
        return std::nullopt;
      }
      if (s.centre() < a || s.centre() > b) continue;
      if (!any || s.watts > best.power.watts()) best.power = Power::watts(s.watts);
      any = true;
    }
    best.window = duration_of(shape_->window() > 0 ? shape_->window() : shape_->spacing());
  } else {
    for (std::size_t i = 1; i < anchors_.size(); ++i) {
      const double from = anchors_[i - 1].anchor.at;
      const double to = anchors_[i].anchor.at;
      if (to < a || from > b) continue;
      const double watts = (anchors_[i].joules - anchors_[i - 1].joules) / (to - from);
      if (!any || watts > best.power.watts()) {
        best = {Power::watts(watts), duration_of(to - from)};
      }
      any = true;
    }
  }
  return any ? std::optional{best} : std::nullopt;
}

std::optional<model::EndTurns> EnergyTimeline::turns(HostTime begin, HostTime end) {
  refresh();
  const auto turn = [this](HostTime t) -> std::optional<double> {
    const double at = time_->seconds_of(t);
    if (has_samples()) return shape_->turn(at);
    const auto next = next_anchor(at);
    if (next == anchors_.begin() || next == anchors_.end()) return std::nullopt;
    const double before = std::prev(next)->anchor.at;
    return (at - before) / (next->anchor.at - before);
  };
  const auto from = turn(begin);
  const auto to = turn(end);
  if (!from || !to) return std::nullopt;
  return model::EndTurns{*from, *to};
}

Duration EnergyTimeline::missing_samples(HostTime begin, HostTime end) {
  if (!has_samples()) return {};
  return duration_of(shape_->missing_seconds(time_->seconds_of(begin), time_->seconds_of(end)));
}

Duration EnergyTimeline::resolution() {
  refresh();
  if (has_samples()) {
    const double refresh_of = shape_->sensor().traits.refresh
                                  ? seconds(*shape_->sensor().traits.refresh)
                                  : shape_->spacing();
    return duration_of(std::max({shape_->window(), refresh_of, shape_->spacing()}));
  }
  const double refresh_of = sensors_.counter && sensors_.counter->traits.refresh
                                ? seconds(*sensors_.counter->traits.refresh)
                                : 0.0;
  const double spacing = anchors_.size() > 1
                             ? (anchors_.back().anchor.at - anchors_.front().anchor.at) /
                                   static_cast<double>(anchors_.size() - 1)
                             : 0.0;
  return duration_of(std::max(refresh_of, spacing));
}

const std::vector<Note>& EnergyTimeline::notes() {
  refresh();
  if (auto doubt = unwrapper_ ? unwrapper_->take_doubt() : std::nullopt) add_note(*doubt);
  return notes_;
}

const model::ScaleError& EnergyTimeline::sensor_scale() const {
  const bool counted = sensors_.counter && (!anchors_.empty() || !sensors_.power);
  return (counted ? *sensors_.counter : *sensors_.power).traits.scale;
}

std::string EnergyTimeline::sensor_name() const {
  const bool counted = sensors_.counter && !points_.empty();
  const bool sampled = sensors_.power && shape_;
  if (counted && sampled) return sensors_.counter->name + " + " + sensors_.power->name;
  if (counted) return sensors_.counter->name;
  if (sampled) return sensors_.power->name;
  return sensors_.counter ? sensors_.counter->name : sensors_.power->name;
}

std::string EnergyTimeline::method() const {
  if (provenance() == model::Provenance::kEstimated) return "model";
  const bool counted = sensors_.counter && !points_.empty();
  if (counted && shape_) return "fused";
  return counted ? "counter" : "samples";
}

model::Provenance EnergyTimeline::provenance() const {
  auto p = model::Provenance::kUnavailable;
  if (sensors_.counter && !points_.empty()) p = combine(p, sensors_.counter->provenance);
  if (sensors_.power && shape_) p = combine(p, sensors_.power->provenance);
  return p;
}

namespace {

// --- The uncertainty of an EnergyTimeline's energies: the formula in timeline.h ---

const double kUniform = 1 / std::sqrt(12.0);  // standard deviation of a uniform unit interval

}  // namespace

double EnergyTimeline::swing(double t) const {
  if (has_samples()) return shape_->swing(t);
  // Between the mean powers around t, from anchor to anchor.
  auto next = next_anchor(t);
  double low = 1e300;
  double high = 0;
  for (std::ptrdiff_t i = -1; i <= 1; ++i) {
    const std::ptrdiff_t b = next - anchors_.begin() + i;
    if (b < 1 || b >= static_cast<std::ptrdiff_t>(anchors_.size())) continue;
    const Placed& from = anchors_[static_cast<std::size_t>(b - 1)];
    const Placed& to = anchors_[static_cast<std::size_t>(b)];
    const double watts = (to.joules - from.joules) / (to.anchor.at - from.anchor.at);
    low = std::min(low, watts);
    high = std::max(high, watts);
  }
  return high > low ? high - low : 0;
}

double EnergyTimeline::place_sigma(double t) const {
  double tau = 0;
  if (uses_fit()) {
    const double marked =
        shape_->time_constant() > 0 ? kErrors.placed_at_mark_lagged : kErrors.placed_at_mark;
    tau = std::hypot(
        (is_edge(t) ? marked : kErrors.placed_by_samples) * shape_->window(),
        kUniform * shape_->unplaced(),
        kUniform * kErrors.unseen_edge * std::max(shape_->spacing() - shape_->window(), 0.0));
  } else if (has_samples()) {
    tau = kUniform * (shape_->window() + shape_->spacing());
    // The window of a polled sensor may be as long as its period: an RTX A5000 shows a step 100 ms
    // after it, at the next value.
    if (shape_->window() <= 0 && is_polled()) tau = kUniform * 2 * shape_->spacing();
    if (shape_->window() <= 0 && shape_->sensor().kind == model::SensorKind::kPowerAverage) {
      const double window = kErrors.unknown_window;
      return kUniform * window * shape_->variation(t - window, t + window).range;
    }
  } else {
    auto next = next_anchor(t);
    if (next == anchors_.begin() || next == anchors_.end()) return 0;
    tau = kUniform * (next->anchor.at - std::prev(next)->anchor.at);
  }
  return tau * swing(t);
}

EnergyTimeline::Bridge EnergyTimeline::bridge(double t) const {
  Bridge best;
  const auto next = next_anchor(t);
  const double joules = joules_at(t);
  const double quantum =
      sensors_.counter ? kUniform * sensors_.counter->traits.quantum.joules() : 0.0;
  const auto consider = [&](const Placed& p) {
    const double at = p.anchor.at;
    const double timing =
        p.anchor.sigma * (p.anchor.on_lattice ? swing(at) : std::max(power_at(at), swing(at)));
    double between = std::max(kErrors.scale, scale_.sigma) * std::abs(joules - p.joules);
    if (has_samples()) {
      between =
          std::hypot(between, std::sqrt(shape_->missed_variance(std::min(at, t), std::max(at, t))));
    } else if (next == anchors_.end() || next == anchors_.begin()) {
      between = std::max(between, kErrors.beyond_anchors * std::abs(joules - p.joules));
    } else {
      between = std::max(between, kErrors.between_anchors * std::abs(joules - p.joules));
    }
    const double sigma = std::sqrt(timing * timing + between * between + quantum * quantum);
    if (!best.anchored || sigma < best.sigma) best = {sigma, true};
  };
  if (next != anchors_.end()) consider(*next);
  if (next != anchors_.begin()) consider(*std::prev(next));
  return best;
}

// Of the energy: what samples that see part of the time miss of a load that changes as fast as
// they come. Of one that is steady over many samples, in proportion less.
double EnergyTimeline::unseen_ratio(double a, double b) const {
  const double unseen = kErrors.unseen_time * (1 - shape_->seen_fraction());
  const double length = b - a;
  if (unseen <= 0 || length <= 0) return unseen;
  const auto within = shape_->around(a, b);
  if (static_cast<double>(within.last - within.first) < kErrors.steady_samples) return unseen;
  const double mean = shape_->integral(a, b) / length;
  const double step = shape_->variation(a, b).change;
  return mean > 0 ? unseen * std::min(1.0, step / (kErrors.unsteady_step * mean)) : unseen;
}

// Where power changes at both ends.
double EnergyTimeline::ends_sigma(double a, double b) const {
  const double place = std::hypot(place_sigma(a), place_sigma(b));
  if (!has_samples()) return place;
  const double blur = kErrors.blurred_end * (shape_->window() + shape_->spacing());
  const double sum = std::hypot(place, std::sqrt(2.0) * blur * hidden_step(a, b));
  return is_short_work(a, b) ? kErrors.short_factor * sum : sum;
}

// All updates of a lattice are late together, and so are all samples of a driver's buffer, by which
// the updates are placed: the errors of both ends have opposite signs.
double EnergyTimeline::late_sigma(double a, double b) const {
  double late = uses_fit() && !is_polled() ? std::hypot(kErrors.late, kErrors.late_by_place) : 0.0;
  if (!anchors_.empty()) {
    const auto anchor = std::lower_bound(anchors_.begin(), anchors_.end(), b,
                                         [](const Placed& p, double t) { return p.anchor.at < t; });
    const Anchor& edge = anchor == anchors_.end() ? anchors_.back().anchor : anchor->anchor;
    if (edge.on_lattice) late = std::hypot(late, edge.sigma);
  }
  if (late == 0) return 0;
  const auto around = [this](double t) { return (joules_at(t + 0.1) - joules_at(t - 0.1)) / 0.2; };
  return late * std::abs(around(b) - around(a));
}

Energy EnergyTimeline::alike(HostTime begin, HostTime end) {
  refresh();
  if (knots_.size() < 2 || end <= begin) return {};
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  double ends = ends_sigma(a, b);
  if (has_samples() && !is_polled() && shape_->time_constant() <= 0) {
    ends = std::min(ends, kErrors.late * std::max(swing(a), swing(b)));
  }
  return Energy::joules(kErrors.normal95 * std::hypot(ends, late_sigma(a, b)));
}

double EnergyTimeline::sigma(double a, double b) const {
  const double length = b - a;
  if (length <= 0) return 0;
  const bool shaped = has_samples();
  double sum = std::pow(ends_sigma(a, b), 2);
  const double joules = joules_at(b) - joules_at(a);
  const Bridge left = bridge(a);
  const Bridge right = bridge(b);
  double inside = 1e300;
  if (shaped) {
    inside = shape_->missed_variance(a, b) + std::pow(kErrors.sample_noise * joules, 2) +
             std::pow(unseen_ratio(a, b) * joules, 2);
  }
  if (left.anchored && right.anchored) {
    inside = std::min(inside, left.sigma * left.sigma + right.sigma * right.sigma);
  }
  sum += std::pow(late_sigma(a, b), 2);
  if (inside < 1e299) sum += inside;
  const Coverage covered = coverage(a, b);
  sum += covered.lost_variance + std::pow(scale_.sigma * covered.lost, 2);
  if (shaped && shape_->window() > length) {
    // A pulse shorter than a sample's window may lie inside or outside of [a, b]. A first-order lag
    // leaves its height uncertain, too: more so without marks.
    const bool marked = is_edge(a) && is_edge(b);
    const double part = shape_->time_constant() <= 0 ? kErrors.hidden_pulse
                        : marked                     ? kErrors.hidden_pulse_lagged_marked
                                                     : kErrors.hidden_pulse_lagged;
    sum += std::pow(part * (shape_->window() - length) * std::max(swing(a), swing(b)), 2);
  }
  // Power beyond the data is a guess.
  const double beyond = std::max(knots_.front().at - a, 0.0) + std::max(b - knots_.back().at, 0.0);
  sum += std::pow(kErrors.beyond_data * beyond * std::max(power_at(a), power_at(b)), 2);
  return std::sqrt(sum);
}

}  // namespace jouleprof::analysis
