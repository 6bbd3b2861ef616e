#include "analysis/kernels/quiet_power.h"

#include <algorithm>
#include <cmath>

#include "analysis/kernels/regression/attribution_belief.h"

namespace jouleprof::analysis {
namespace {

constexpr int kFewest = 5;      // observations
constexpr double kNear = 0.12;  // seconds from the nearest work
constexpr double kWarm = 5;     // seconds: time constant of a board's cooling

}  // namespace

void QuietPower::add(const ObservedPower& s) {
  const auto& bins = table_.bins;
  while (next_ < bins.size() && bins[next_].begin < s.end) {
    const auto& bin = bins[next_];
    double busy = 0;
    for (std::size_t i = bin.first; i < table_.end_of(next_); ++i) busy += table_.entries[i].busy;
    heat_ = heat_ * std::exp(-(bin.begin - last_end_) / kWarm) + busy;
    last_end_ = bin.begin + bin.width;
    ++next_;
  }
  if (last_end_ > s.begin - memory_) return;
  const double since = s.begin - last_end_;
  const double until = next_ < bins.size() ? bins[next_].begin - s.end : 1e9;
  const double length = s.end - s.begin;
  const double weight = length * std::exp(-std::min(since, until) / kNear) *
                        (0.05 + heat_ * std::exp(-since / kWarm));
  ++count_;
  between_ += last_end_ > -1e8 && next_ < bins.size() ? 1 : 0;
  weight_ += weight;
  watts_ += weight * s.watts;
  squares_ += weight * s.watts * s.watts;
}

std::optional<IdleHint> QuietPower::hint() const {
  if (count_ < kFewest || weight_ <= 0) return std::nullopt;
  const double mean = watts_ / weight_;
  const double spread = std::sqrt(std::max(squares_ / weight_ - mean * mean, 0.0));
  return IdleHint{mean, 0.5 + 0.3 * spread, between_ < kFewest ? kBelief.held : 0.0};
}

}  // namespace jouleprof::analysis
