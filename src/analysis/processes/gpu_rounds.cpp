#include "analysis/processes/gpu_rounds.h"

#include <algorithm>

namespace jouleprof::analysis {
namespace {

constexpr Duration kOneRound = std::chrono::milliseconds{50};
constexpr Duration kLongest = std::chrono::seconds{15};  // between two rounds

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

std::span<const model::GpuProcessReading> GpuRounds::round(std::size_t index) const {
  const std::size_t end = index + 1 < rounds_.size() ? rounds_[index + 1] : readings_.size();
  return std::span(readings_).subspan(rounds_[index], end - rounds_[index]);
}

std::vector<model::GpuProcessReading> GpuRounds::around(HostTime t) const {
  const auto next = static_cast<std::size_t>(
      std::partition_point(rounds_.begin(), rounds_.end(),
                           [&](std::size_t i) { return readings_[i].at < t; }) -
      rounds_.begin());
  const auto after = next < rounds_.size() ? round(next) : Round{};
  const auto before = next > 0 ? round(next - 1) : Round{};
  const auto lists = [](Round round, model::ProcessId process) {
    return std::any_of(round.begin(), round.end(),
                       [&](const auto& r) { return r.process == process; });
  };
  const auto is_near = [&](const auto& r) { return std::chrono::abs(r.at - t) <= 3 * usual_ / 2; };
  std::vector<model::GpuProcessReading> out;
  for (const auto& r : after) {
    if (is_near(r) || (lists(before, r.process) && r.at - before.front().at <= kLongest)) {
      out.push_back(r);
    }
  }
  const bool has_after = !out.empty();
  for (const auto& r : before) {
    if (!is_near(r) || lists(out, r.process)) continue;
    out.push_back(r);
    // It ended before the next round: its use is unknown.
    if (has_after) out.back().compute_utilisation.reset();
  }
  return out;
}

}  // namespace jouleprof::analysis
