// What an EnergyTimeline's counter covers, and how its samples agree with it.
#include <algorithm>
#include <cmath>

#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

// Seconds.
constexpr double kScaleTime = 60;  // of anchors that give the samples' scale
constexpr double kCell = 1;        // of one comparison of counter and samples

}  // namespace

double EnergyTimeline::gain_error() const {
  const double counter = sensors_.counter ? sensors_.counter->traits.gain_error : 0.0;
  const double power = sensors_.power ? sensors_.power->traits.gain_error : 0.0;
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
  // Between the windows of the samples any power is possible, and the counter is right.
  const double unseen = (1 - shape_->seen_fraction()) * out.sampled;
  const double sigma = std::sqrt(out.variance);
  out.disagree = std::abs(out.counted - out.sampled) >
                 gain_error() * std::max(out.sampled, out.counted) + unseen + 3 * sigma +
                     shape_->window() * (shape_->swing(a) + shape_->swing(b));
  return out;
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
    const std::size_t last = next_cell(first);
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
  const double prior = gain_error() / 1.96;
  Comparison seen;
  auto first = static_cast<std::size_t>(
      std::partition_point(anchors_.begin(), anchors_.end(),
                           [&](const Placed& p) { return p.anchor.at < to - kScaleTime; }) -
      anchors_.begin());
  while (first + 1 < anchors_.size()) {
    const std::size_t last = next_cell(first);
    const auto compared = compare(anchors_[first], anchors_[last]);
    first = last;
    if (!compared) continue;
    if (compared->disagree) continue;
    seen.counted += compared->counted;
    seen.sampled += compared->sampled;
    seen.variance += compared->variance;
  }
  if (seen.sampled <= 0 || seen.counted <= 0) return {1, prior};
  const double ratio = seen.counted / seen.sampled;
  const double sigma = std::sqrt(seen.variance) / seen.sampled;
  const double both = std::hypot(prior, sigma);
  if (both <= 0) return {1, 0};
  const double weight = prior * prior / (both * both);
  return {1 + weight * (ratio - 1), prior * sigma / both};
}

}  // namespace jouleprof::analysis
