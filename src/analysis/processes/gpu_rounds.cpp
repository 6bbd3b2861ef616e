#include "analysis/processes/gpu_rounds.h"

#include <algorithm>

namespace jouleprof::analysis {
namespace {

constexpr Duration kOneRound = std::chrono::milliseconds{50};

}  // namespace

GpuRounds::GpuRounds(const std::vector<model::GpuProcessReading>& readings,
                     const model::Domain& domain) {
  for (const auto& r : readings) {
    if (r.domain == domain.id || r.domain == domain.parent) readings_.push_back(r);
  }
  std::stable_sort(readings_.begin(), readings_.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  std::vector<Duration> steps;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (i > 0 && readings_[i].at - readings_[i - 1].at < kOneRound) continue;
    if (!rounds_.empty()) steps.push_back(readings_[i].at - readings_[rounds_.back()].at);
    rounds_.push_back(i);
  }
  if (!steps.empty()) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    usual_ = *middle;
  }
}

std::vector<model::GpuProcessReading> GpuRounds::around(HostTime t) const {
  std::vector<model::GpuProcessReading> out;
  const auto next = static_cast<std::size_t>(
      std::partition_point(rounds_.begin(), rounds_.end(),
                           [&](std::size_t i) { return readings_[i].at < t; }) -
      rounds_.begin());
  if (next < rounds_.size()) add_round(next, t, out);
  const std::size_t after = out.size();
  if (next > 0) add_round(next - 1, t, out);
  // With both rounds, a process of the earlier one alone ended in between: its use is unknown.
  if (after > 0) {
    for (std::size_t i = after; i < out.size(); ++i) out[i].compute_utilisation.reset();
  }
  return out;
}

void GpuRounds::add_round(std::size_t round, HostTime t,
                          std::vector<model::GpuProcessReading>& out) const {
  const std::size_t begin = rounds_[round];
  const std::size_t end = round + 1 < rounds_.size() ? rounds_[round + 1] : readings_.size();
  if (std::chrono::abs(readings_[begin].at - t) > 3 * usual_ / 2) return;
  for (std::size_t i = begin; i < end; ++i) {
    const bool is_known = std::any_of(
        out.begin(), out.end(), [&](const auto& r) { return r.process == readings_[i].process; });
    if (!is_known) out.push_back(readings_[i]);
  }
}

}  // namespace jouleprof::analysis
