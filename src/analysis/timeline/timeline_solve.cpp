#include <algorithm>
#include <cmath>

#include "analysis/timeline/power_fit.h"
#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// --- How an interval of an EnergyTimeline is computed from its samples and anchors ---

constexpr double kLongMissing = 1.0;   // seconds without samples
constexpr double kMostTiming = 0.002;  // seconds: the largest timing error of a lattice in a fit

}  // namespace

std::vector<double> EnergyTimeline::fit_knots(double start, double stop) const {
  const double h = std::clamp(shape_->window() / 5, 0.001, 0.02);
  constexpr long kCoarse = 4;  // at constant power: every fourth knot
  const auto range = shape_->around(start, stop);
  const auto& samples = shape_->samples();
  struct Active {
    double from, to;
  };
  std::vector<Active> active;
  const auto add = [&](double from, double to) {
    if (!active.empty() && from <= active.back().to) {
      active.back().to = std::max(active.back().to, to);
    } else {
      active.push_back({from, to});
    }
  };
  for (std::size_t i = std::max<std::size_t>(range.first, 1); i < range.last; ++i) {
    const double change = std::abs(samples[i].watts - samples[i - 1].watts);
    if (change > 0.02 * samples[i].watts + 0.5) {
      add(samples[i - 1].begin - 2 * shape_->window(), samples[i].end + 2 * shape_->window());
    }
  }
  std::vector<double> knots;
  std::size_t a = 0;
  std::size_t sample = range.first;
  auto mark = std::ranges::upper_bound(marks_, start + 0.3 * h);
  for (long n = std::lround(std::ceil(start / h + 0.01));; ++n) {
    const double t = static_cast<double>(n) * h;
    while (mark != marks_.end() && *mark < t && *mark < stop + h) {
      // A least distance of marks bounds the matrix's band.
      if (!knots.empty() && *mark - knots.back() < 0.3 * h) {
        if (!is_marked(knots.back())) knots.back() = *mark;
      } else {
        knots.push_back(*mark);
      }
      ++mark;
    }
    while (a < active.size() && active[a].to < t) ++a;
    const bool fine = a < active.size() && active[a].from <= t;
    const bool clear = (knots.empty() || t - knots.back() >= 0.3 * h) &&
                       (mark == marks_.end() || *mark >= stop + h || *mark - t >= 0.3 * h);
    if ((fine || n % kCoarse == 0) && clear) knots.push_back(t);
    if (t >= stop && knots.size() >= 3 && knots.back() >= stop) break;
    // Where samples are missing for long, only anchors need knots.
    while (sample < samples.size() && samples[sample].end < t) ++sample;
    const double from = sample > 0 ? samples[sample - 1].end : -1e300;
    const double to = sample < samples.size() ? samples[sample].begin : stop;
    if (t < from + kLongMissing || to < t + kLongMissing) continue;
    const auto anchor = next_anchor(t);
    const double next = anchor == anchors_.end() ? to : std::min(to, anchor->anchor.at);
    n = std::max(n, std::lround(std::floor(std::min(next, stop) / h)) - 1);
  }
  return knots;
}

std::vector<EnergyTimeline::Knot> EnergyTimeline::fit(double start, double stop) const {
  FitProblem problem;
  problem.time_constant = shape_->time_constant();
  const auto& parameters = problem.time_constant > 0 ? kErrors.lagged : kErrors.plain_mean;
  const double window = shape_->window();
  // Settled knots within the reach of a sample are fixed.
  std::size_t context = settled_;
  while (context > 0 && knots_[context - 1].at > start - 2 * window - 0.05) --context;
  const double base = settled_ > 0 ? knots_[settled_ - 1].joules
                                   : (anchors_.empty() ? 0.0 : anchors_.front().joules);
  for (std::size_t k = context; k < settled_; ++k) {
    problem.knots.push_back(knots_[k].at);
    problem.points.push_back({knots_[k].at, knots_[k].joules - base, 1e-4, false});
  }
  if (settled_ == 0) problem.knots.push_back(start);
  for (const double t : fit_knots(problem.knots.back(), stop)) problem.knots.push_back(t);

  const auto& samples = shape_->samples();
  const auto range = shape_->around(problem.knots.front(), problem.knots.back());
  const double ratio = scale_.ratio;
  double highest = 0;
  double lowest = 1e300;
  for (std::size_t i = range.first; i < range.last; ++i) {
    highest = std::max(highest, ratio * samples[i].watts);
    lowest = std::min(lowest, ratio * samples[i].watts);
  }
  bool calm = true;
  for (std::size_t i = range.first; i < range.last; ++i) {
    const auto& s = samples[i];
    const double end = shape_->mean_end(s);
    const double begin = end - shape_->mean_window();
    if (s.begin < problem.knots.front() - 1e-9 || end > problem.knots.back() + 1e-9) continue;
    const double before = i > 0 ? samples[i - 1].watts : s.watts;
    const double after = i + 1 < samples.size() ? samples[i + 1].watts : s.watts;
    const double steep = std::abs(after - before);
    // A wrong timestamp causes an error where power changes.
    const double sigma =
        ratio * std::sqrt(std::pow(0.003 * s.watts, 2) + std::pow(parameters.jitter * steep, 2)) +
        0.0005 * highest + 0.01;
    problem.means.push_back({begin, end, ratio * s.watts, sigma});
    calm = calm && steep <= 0.02 * s.watts + 0.5;
  }
  // Both sensors measure the same board, with the same time constant.
  const double counter_lag =
      sensors_.counter && sensors_.counter->traits.rise ? problem.time_constant : 0.0;
  const double quantum = sensors_.counter ? sensors_.counter->traits.quantum.joules() : 0.0;
  for (std::size_t i = settled_anchors_; i < anchors_.size(); ++i) {
    const auto& [anchor, joules, doubt] = anchors_[i];
    if (anchor.at < problem.knots.front() || anchor.at > problem.knots.back()) continue;
    // Anchors of one lattice are late together; small errors here keep the total right.
    const double moved =
        anchor.on_lattice ? std::min(anchor.sigma, kMostTiming) * shape_->swing(anchor.at) * ratio
                          : anchor.sigma * highest;
    // Anchors are at the time of the energy; the counter responds one time constant later.
    const bool seen =
        counter_lag > 0 && anchor.on_lattice && anchor.at + counter_lag <= problem.knots.back();
    problem.points.push_back({seen ? anchor.at + counter_lag : anchor.at, joules - base,
                              std::hypot(0.3 * quantum, 3e-5 * highest, moved) + 1e-6, seen});
  }
  if (!marks_.empty()) {
    problem.usual_jump.assign(problem.knots.size(), 0.0);
    for (std::size_t k = 0; k < problem.knots.size(); ++k) {
      if (is_edge(problem.knots[k])) problem.usual_jump[k] = parameters.jump * highest;
    }
  }
  problem.floor_watts = 0.7 * std::min(lowest, highest);
  problem.noise_watts = std::max(parameters.noise * highest, 0.01);
  problem.rounds = calm ? 2 : 6;

  const std::vector<double> joules = fit_energy(problem);
  std::vector<Knot> out;
  for (std::size_t k = settled_ > 0 ? settled_ - context : 0; k < joules.size(); ++k) {
    out.push_back({problem.knots[k], joules[k] + base});
  }
  // Energy never decreases after the settled end.
  const double floor = settled_ > 0 ? base : out.front().joules;
  for (Knot& k : out) k.joules = std::max(k.joules, floor);
  return out;
}

std::vector<EnergyTimeline::Knot> EnergyTimeline::scale(double start, double stop) const {
  const bool shaped = has_samples();
  const auto integral = [&](double a, double b) { return shaped ? shape_->integral(a, b) : b - a; };

  std::vector<Knot> out;
  double at = start;
  double joules = 0;
  std::size_t next = settled_anchors_;
  const double ratio =
      shaped || anchors_.empty()
          ? scale_.ratio
          : (anchors_.back().joules - anchors_.front().joules) /
                std::max(anchors_.back().anchor.at - anchors_.front().anchor.at, 1e-3);
  if (settled_ > 0) {
    joules = knots_[settled_ - 1].joules;
  } else {
    if (!anchors_.empty()) {
      joules = anchors_.front().joules - ratio * integral(start, anchors_.front().anchor.at);
    }
    out.push_back({at, joules});
  }
  const auto run = [&](double to, double factor) {
    const double origin = joules;
    const double from = at;
    if (shaped) {
      const auto range = shape_->around(from, to);
      for (std::size_t i = range.first; i < range.last; ++i) {
        const double edge = shape_->samples()[i].until;
        if (edge <= at + 1e-6 || edge >= to - 1e-6) continue;
        out.push_back({edge, origin + factor * integral(from, edge)});
        at = edge;
      }
    }
    joules = origin + factor * integral(from, to);
    at = to;
    out.push_back({at, joules});
  };
  for (; next < anchors_.size(); ++next) {
    const auto& [anchor, stands, doubt] = anchors_[next];
    if (anchor.at <= at + 1e-6) continue;
    const double shape = integral(at, anchor.at);
    const double increment = std::max(stands - joules, 0.0);
    if (shape > 0) {
      run(anchor.at, increment / shape);
    } else {
      at = anchor.at;
      joules += increment;
      out.push_back({at, joules});
    }
  }
  if (stop > at + 1e-6) run(stop, ratio);
  return out;
}

namespace {

// --- What an EnergyTimeline's sensors observed, one by one ---

// Seconds from its nearest anchor within which a counter is interpolated.
constexpr double kCounterReach = 0.15;

}  // namespace

std::optional<Energy> EnergyTimeline::counter_only(HostTime begin, HostTime end) {
  refresh();
  if (anchors_.size() < 2) return std::nullopt;
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  if (a < anchors_.front().anchor.at || b > anchors_.back().anchor.at) return std::nullopt;
  const auto joules = [this](double t) {
    const auto next = std::clamp(next_anchor(t), anchors_.cbegin() + 1, anchors_.cend() - 1);
    const Placed& p = *std::prev(next);
    return p.joules +
           (next->joules - p.joules) * (t - p.anchor.at) / (next->anchor.at - p.anchor.at);
  };
  const auto segment = [this](double t) {
    const auto next = next_anchor(t);
    return next == anchors_.begin() ? next->anchor.segment : std::prev(next)->anchor.segment;
  };
  const auto distance_to_anchor = [this](double t) {
    const auto next = next_anchor(t);
    const double after = next == anchors_.end() ? INFINITY : next->anchor.at - t;
    return next == anchors_.begin() ? after : std::min(after, t - std::prev(next)->anchor.at);
  };
  if (distance_to_anchor(a) > kCounterReach || distance_to_anchor(b) > kCounterReach) {
    return std::nullopt;
  }
  // Across a reset the counter alone gives no energy.
  if (segment(a) != segment(b)) return std::nullopt;
  return Energy::joules(joules(b)) - Energy::joules(joules(a));
}

std::optional<Energy> EnergyTimeline::samples_only(HostTime begin, HostTime end) {
  if (!has_samples()) return std::nullopt;
  const double a = time_->seconds_of(begin);
  const double b = time_->seconds_of(end);
  const double reach = shape_->spacing() + 0.02;
  if (a < shape_->samples().front().begin - reach || b > *shape_->end() + reach)
    return std::nullopt;
  return Energy::joules(shape_->integral(a, b));
}

double EnergyTimeline::time_constant() const {
  if (shape_ && shape_->time_constant() > 0) return shape_->time_constant();
  return sensors_.counter && sensors_.counter->traits.rise ? seconds(*sensors_.counter->traits.rise)
                                                           : 0.0;
}

std::vector<ObservedPower> EnergyTimeline::observations(HostTime begin, HostTime end,
                                                        TimeBase base) {
  refresh();
  std::vector<ObservedPower> out;
  if (!time_) return out;
  const double from = time_->seconds_of(begin);
  const double to = time_->seconds_of(end);
  const double shift = base.seconds_of(time_->origin);
  const bool lagging = sensors_.counter && sensors_.counter->traits.rise;
  const double late = lagging ? seconds(*sensors_.counter->traits.rise) : 0.0;
  // Anchors are at the time of the energy; the counter responds one time constant later.
  for (std::size_t i = 1; i < anchors_.size(); ++i) {
    const Anchor& a = anchors_[i - 1].anchor;
    const Anchor& b = anchors_[i].anchor;
    if (a.at < from || b.at > to || a.segment != b.segment) continue;
    const double length = b.at - a.at;
    if (length <= 0 || a.sigma + b.sigma > 0.3 * length) continue;
    const bool lattice = a.on_lattice && b.on_lattice && sensors_.counter->traits.refresh;
    const double lateness = lattice ? late : 0.0;
    // The lattice's own period, where two of its parts were fitted a little differently.
    const double period = lattice ? seconds(*sensors_.counter->traits.refresh) : 0.0;
    const double updates = lattice ? std::round(length / period) : 0.0;
    const double apart = updates > 0 && std::abs(length - updates * period) < 0.1 * period
                             ? updates * period
                             : length;
    out.push_back({b.at - apart + lateness + shift, b.at + lateness + shift,
                   (b.joules - a.joules) / apart, true});
  }
  if (shape_ && shape_->mean_window() > 0 &&
      shape_->sensor().kind != model::SensorKind::kPowerAverage) {
    const auto doubtful = shape_->doubtful_stamps();
    for (std::size_t i = 0; i < shape_->samples().size(); ++i) {
      if (!doubtful.empty() && doubtful[i]) continue;
      const PowerSample& s = shape_->samples()[i];
      const double end_of_mean = shape_->mean_end(s);
      const double begin_of_mean = end_of_mean - shape_->mean_window();
      if (begin_of_mean < from || end_of_mean > to) continue;
      out.push_back({begin_of_mean + shift, end_of_mean + shift, s.watts, false});
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
