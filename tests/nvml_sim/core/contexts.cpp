#include "nvml_sim/core/contexts.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::nvml_sim {

Intervals united(Intervals all) {
  std::sort(all.begin(), all.end());
  Intervals out;
  for (const auto& [begin, end] : all) {
    if (begin >= end) continue;
    if (out.empty() || begin > out.back().second) out.emplace_back(begin, end);
    out.back().second = std::max(out.back().second, end);
  }
  return out;
}

Intervals Contexts::until(double t) const {
  Intervals all;
  for (const auto& holder : holders_) {
    if (!holder.tree) {
      all.emplace_back(holder.begin, holder.end);
      continue;
    }
    for (const auto& [begin, end] : holder.tree->presence(t)) {
      all.emplace_back(std::max(begin, holder.begin), std::min(end, holder.end));
    }
  }
  return united(std::move(all));
}

bool Contexts::exist(double t) const {
  const auto all = until(t);
  return std::any_of(all.begin(), all.end(),
                     [t](const auto& span) { return span.first <= t && t < span.second; });
}

double Contexts::watts_near(double t, double inside) const {
  double watts = 0;
  for (const auto& [begin, end] : until(inside)) {
    if (begin > inside) break;
    watts =
        inside < end ? power_.held_watts : power_.after_watts * std::exp(-(t - end) / power_.decay);
  }
  return watts;
}

double Contexts::joules(double begin, double end) const {
  const auto all = until(end);
  double joules = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [from, to] = all[i];
    joules += power_.held_watts * std::max(0.0, std::min(to, end) - std::max(from, begin));
    const double next = i + 1 < all.size() ? all[i + 1].first : kForever;
    const double decay_from = std::max(to, begin);
    const double decay_to = std::min(next, end);
    if (decay_from >= decay_to) continue;
    joules +=
        power_.after_watts * power_.decay *
        (std::exp(-(decay_from - to) / power_.decay) - std::exp(-(decay_to - to) / power_.decay));
  }
  return joules;
}

double Contexts::next_break(double t) const {
  for (const auto& [begin, end] : until(t)) {
    if (begin > t) return begin;
    if (end > t) return end;
  }
  return kForever;
}

Curve curve_of(std::shared_ptr<const Contexts> contexts) {
  const double highest = std::max(contexts->power_.held_watts, contexts->power_.after_watts);
  return {[contexts](double t, double inside) { return contexts->watts_near(t, inside); },
          [contexts](double begin, double end) { return contexts->joules(begin, end); },
          [contexts](double t) { return contexts->next_break(t); }, 0, highest};
}

}  // namespace jouleprof::nvml_sim
