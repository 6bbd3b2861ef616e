#include "analysis/window_totals.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kNormal95 = 1.96;
constexpr Duration kStep = 5ms;
constexpr Duration kLong = 100ms;

std::int64_t step_of(HostTime t) { return t.time_since_epoch() / kStep; }
HostTime begin_of(std::int64_t step) { return HostTime{step * kStep}; }

}  // namespace

void WindowTotals::add(std::uint32_t id, HostTime begin, HostTime end) {
  Name& name = names_[id];
  if (name.sums.empty()) name.sums.resize(domains_);
  ++name.count;
  name.length += end - begin;
  name.latest_end = std::max(name.latest_end, end);
  if (end - begin >= kLong) {
    name.longs.push_back({begin, end});
    return;
  }
  const std::int64_t first = step_of(begin);
  const std::int64_t last = step_of(end);
  if (name.covered.empty()) name.first_step = first;
  while (first < name.first_step) {
    name.covered.push_front(0);
    name.ended.push_front(0);
    --name.first_step;
  }
  const auto size = static_cast<std::size_t>(last - name.first_step + 1);
  if (name.covered.size() < size) name.covered.resize(size), name.ended.resize(size);
  for (std::int64_t step = first; step <= last; ++step) {
    const Duration part = std::min(end, begin_of(step + 1)) - std::max(begin, begin_of(step));
    name.covered[static_cast<std::size_t>(step - name.first_step)] += seconds(part);
  }
  ++name.ended[size - 1];
}

void WindowTotals::resolve_steps(Name& name, std::int64_t steps, EnergyTimeline& timeline,
                                 Sum& sum) const {
  const HostTime begin = begin_of(name.first_step);
  const auto whole = timeline.energy(begin, begin_of(name.first_step + steps));
  if (!whole) {
    sum.missing = whole.error().message;
    return;
  }
  sum.kind = *whole;
  const auto group = std::clamp<std::int64_t>((timeline.resolution() + kStep / 2) / kStep, 1, 200);
  double joules = 0;
  std::optional<Energy> from = timeline.up_to(begin);
  for (std::int64_t at = 0; at < steps; at += group) {
    const std::int64_t end = std::min(at + group, steps);
    double covered = 0;
    double all = 0;
    for (std::int64_t i = at; i < end; ++i) {
      const auto to = timeline.up_to(begin_of(name.first_step + i + 1));
      if (!from || !to) continue;
      const double part = name.covered[static_cast<std::size_t>(i)];
      covered += part;
      all += (*to - *from).joules();
      joules += (*to - *from).joules() * part / seconds(kStep);
      from = to;
    }
    const double share = covered / seconds((end - at) * kStep);
    const double open = share - std::floor(share);
    sum.shared_sigma += 1.15 * all * open * (1 - open);
  }
  sum.joules += joules;
  const double ratio = whole->energy > Energy{} ? joules / whole->energy.joules() : 0.0;
  sum.gain_joules += ratio * model::gain_joules(*whole);
  sum.variance += std::pow(ratio * whole->repeatability.joules() / kNormal95, 2);
}

void WindowTotals::resolve(Name& name, HostTime until, const Timelines& timelines) const {
  const auto unresolved = std::partition(name.longs.begin(), name.longs.end(),
                                         [&](const Long& w) { return w.end > until; });
  const std::int64_t steps = std::clamp<std::int64_t>(
      step_of(until) - name.first_step, 0, static_cast<std::int64_t>(name.covered.size()));
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    if (timelines[i] == nullptr) continue;
    Sum& sum = name.sums[i];
    for (auto w = unresolved; w != name.longs.end(); ++w) {
      const auto m = timelines[i]->energy(w->begin, w->end);
      if (!m) {
        sum.missing = m.error().message;
        continue;
      }
      sum.kind = *m;
      sum.joules += m->energy.joules();
      sum.gain_joules += model::gain_joules(*m);
      sum.variance += std::pow(m->repeatability.joules() / kNormal95, 2);
    }
    if (steps > 0) resolve_steps(name, steps, *timelines[i], sum);
  }
  name.resolved += static_cast<std::uint64_t>(name.longs.end() - unresolved);
  name.longs.erase(unresolved, name.longs.end());
  for (std::int64_t i = 0; i < steps; ++i) {
    name.resolved += name.ended.front();
    name.ended.pop_front();
    name.covered.pop_front();
  }
  name.first_step += steps;
}

void WindowTotals::settle(HostTime until, const Timelines& timelines) {
  for (auto& [id, name] : names_) resolve(name, until, timelines);
}

std::optional<HostTime> WindowTotals::latest_end(std::uint32_t id) const {
  const auto found = names_.find(id);
  if (found == names_.end()) return std::nullopt;
  return found->second.latest_end;
}

std::optional<WindowTotal> WindowTotals::total(std::uint32_t id, const Timelines& timelines) const {
  const auto found = names_.find(id);
  if (found == names_.end()) return std::nullopt;
  Name name = found->second;
  resolve(name, begin_of(step_of(name.latest_end) + 1), timelines);
  WindowTotal total{name.count, name.resolved, name.length, {}};
  for (std::size_t i = 0; i < domains_; ++i) {
    const Sum& sum = name.sums[i];
    if (!sum.missing.empty() || !sum.kind) {
      total.energies.push_back(
          fail(Errc::kUnavailable, sum.missing.empty() ? "no readings" : sum.missing));
      continue;
    }
    model::Measurement m = *sum.kind;
    m.energy = Energy::joules(sum.joules);
    m.repeatability = Energy::joules(kNormal95 * (sum.shared_sigma + std::sqrt(sum.variance)));
    m.error = Energy::joules(std::hypot(m.repeatability.joules(), sum.gain_joules));
    total.energies.push_back(std::move(m));
  }
  return total;
}

}  // namespace jouleprof::analysis
