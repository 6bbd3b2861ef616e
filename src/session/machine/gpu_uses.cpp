#include "session/machine/gpu_uses.h"

#include <algorithm>

namespace jouleprof::session {

GpuUses::GpuUses(const std::vector<model::Domain>& domains) : outermost_(domains.size()) {
  for (std::size_t i = 0; i < domains.size(); ++i) places_[domains[i].id] = i;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::size_t place = i;
    for (std::size_t steps = 0; domains[place].parent && steps < domains.size(); ++steps) {
      const auto parent = places_.find(*domains[place].parent);
      if (parent == places_.end()) break;
      place = parent->second;
    }
    outermost_[i] = place;
  }
}

void GpuUses::append(const std::vector<model::GpuProcessUse>& uses) {
  for (const auto& use : uses) {
    const auto place = places_.find(use.domain);
    if (place == places_.end()) continue;
    auto& reports = reports_[{outermost_[place->second], use.pid}];
    reports.last = use;
    reports.unknown |= !use.compute_utilisation;
    reports.sum += use.compute_utilisation.value_or(0);
    ++reports.count;
  }
}

std::vector<model::GpuProcessUse> GpuUses::of(std::size_t domain, HostTime since) const {
  std::vector<model::GpuProcessUse> out;
  for (auto at = reports_.lower_bound({domain, 0}); at != reports_.end(); ++at) {
    if (at->first.first != domain) break;
    const auto& reports = at->second;
    if (reports.last.at <= since) continue;
    out.push_back(reports.last);
    auto& utilisation = out.back().compute_utilisation;
    if (reports.unknown) utilisation.reset();
    if (utilisation && reports.count > 0) utilisation = reports.sum / reports.count;
  }
  return out;
}

void GpuUses::end_tick() {
  for (auto& [key, reports] : reports_) reports = Reports{reports.last};
}

void GpuUses::forget_before(HostTime t) {
  std::erase_if(reports_, [t](const auto& reports) { return reports.second.last.at < t; });
}

std::vector<double> weights_of(const std::vector<model::GpuProcessUse>& uses) {
  if (uses.size() == 1) return {1.0};
  std::vector<double> weights;
  for (const auto& use : uses) {
    if (!use.compute_utilisation) return {};
    weights.push_back(*use.compute_utilisation);
  }
  return weights;
}

}  // namespace jouleprof::session
