// The uncertainty of an EnergyTimeline's energies: the formula in timeline.h.
#include <algorithm>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

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
    tau = (is_edge(t) ? marked : kErrors.placed_by_samples) * shape_->window();
  } else if (has_samples()) {
    tau = kUniform * (shape_->window() + shape_->spacing());
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

double EnergyTimeline::sigma(double a, double b) const {
  const double length = b - a;
  if (length <= 0) return 0;
  double place = std::hypot(place_sigma(a), place_sigma(b));
  const bool shaped = has_samples();
  if (shaped) {
    const double blur = kErrors.blurred_end * (shape_->window() + shape_->spacing());
    place = std::hypot(place, std::sqrt(2.0) * blur * hidden_step(a, b));
    if (is_short_work(a, b)) place *= kErrors.short_factor;
  }
  double sum = place * place;
  const double joules = joules_at(b) - joules_at(a);
  const Bridge left = bridge(a);
  const Bridge right = bridge(b);
  double inside = 1e300;
  if (shaped) {
    inside = shape_->missed_variance(a, b) + std::pow(kErrors.sample_noise * joules, 2) +
             std::pow(kErrors.unseen_time * (1 - shape_->seen_fraction()) * joules, 2);
  }
  if (left.anchored && right.anchored) {
    inside = std::min(inside, left.sigma * left.sigma + right.sigma * right.sigma);
    // All updates of a lattice are late together: the errors of both ends have opposite signs.
    const auto anchor = std::lower_bound(anchors_.begin(), anchors_.end(), b,
                                         [](const Placed& p, double t) { return p.anchor.at < t; });
    const Anchor& edge = anchor == anchors_.end() ? anchors_.back().anchor : anchor->anchor;
    if (edge.on_lattice) {
      const auto around = [this](double t) {
        return (joules_at(t + 0.1) - joules_at(t - 0.1)) / 0.2;
      };
      sum += std::pow(edge.sigma * (around(b) - around(a)), 2);
    }
  }
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
