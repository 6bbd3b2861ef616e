#include "analysis/repeated/power_drift.h"

#include <algorithm>
#include <cmath>

#include "analysis/repeated/state_powers.h"

namespace jouleprof::analysis {
namespace {

constexpr double kBlock = 1;  // seconds

}  // namespace

PowerDrift::PowerDrift(const WindowStates& states, const Eigen::VectorXd& watts,
                       EnergyTimeline& timeline)
    : begin_(states.first) {
  const auto& table = states.table;
  for (double t = states.first; t < states.last; t += kBlock) {
    const double end = std::min(t + kBlock, states.last);
    const auto energy = timeline.energy(table.time.host_of(t), table.time.host_of(end));
    std::vector<double> times(states.entries(), 0.0);
    states.add_time(t, end, times);
    const double modelled = modelled_joules(states, times, watts);
    if (end < t + kBlock / 2 && !ratios_.empty()) break;
    ratios_.push_back(energy && modelled > 0 ? energy->energy.joules() / modelled : 1.0);
  }
}

double PowerDrift::ratio(double t) const {
  if (ratios_.empty()) return 1;
  const double at = (t - begin_) / kBlock - 0.5;
  const double left = std::clamp(std::floor(at), 0.0, static_cast<double>(ratios_.size() - 1));
  const double part = std::clamp(at - left, 0.0, 1.0);
  const auto i = static_cast<std::size_t>(left);
  return (1 - part) * ratios_[i] + part * ratios_[std::min(i + 1, ratios_.size() - 1)];
}

double PowerDrift::variation() const {
  double mean = 0;
  double squares = 0;
  for (const double ratio : ratios_) {
    mean += ratio / static_cast<double>(ratios_.size());
    squares += ratio * ratio / static_cast<double>(ratios_.size());
  }
  return std::sqrt(std::max(squares - mean * mean, 0.0));
}

}  // namespace jouleprof::analysis
