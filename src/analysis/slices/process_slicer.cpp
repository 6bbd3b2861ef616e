#include "analysis/slices/process_slicer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "analysis/processes/apportion.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/slices/activity_slices.h"

namespace jouleprof::analysis {
namespace {

constexpr Duration kShortest = std::chrono::seconds{1};  // CPU times are read once a second
constexpr std::size_t kMostRows = 100;

}  // namespace

void ProcessSlicer::Sums::add(std::size_t slice, std::int64_t value) {
  if (value == 0) return;
  if (values.empty()) first = slice;
  if (slice < first) {
    values.insert(values.begin(), first - slice, 0);
    first = slice;
  }
  if (slice - first >= values.size()) values.resize(slice - first + 1);
  values[slice - first] += value;
  total += value;
}

ProcessSlicer::ProcessSlicer(const model::Recording& recording, HostTime begin, HostTime end,
                             const SliceRequest& request,
                             const std::vector<model::ActivitySlices>& traced)
    : recording_(recording), traced_(traced) {
  const auto tree = static_cast<std::size_t>(
      std::ranges::count_if(recording.processes, [](auto& p) { return p.in_tree; }));
  const std::size_t rows = std::min(tree * (recording.domains.size() + 1), 2 * kMostRows);
  if (rows == 0 || end <= begin) return;
  slices_.step = step_of(end - begin, request.most_cells / rows, kShortest);
  // Edges at those of the kernels' energies.
  for (const auto& device : traced) slices_.step = std::max(slices_.step, device.step);
  slices_.begin = edge_before(begin, request.origin, slices_.step);
  slices_.count =
      static_cast<std::size_t>((end - slices_.begin + slices_.step - Duration{1}) / slices_.step);
}

// One past the last is second.
std::pair<std::size_t, std::size_t> ProcessSlicer::slices_within(HostTime begin,
                                                                 HostTime end) const {
  const auto place = [&](Duration t) {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(t / slices_.step, 0, static_cast<std::int64_t>(slices_.count)));
  };
  if (slices_.count == 0 || end <= begin || end <= slices_.begin) return {0, 0};
  return {place(std::max(begin - slices_.begin, Duration{})),
          place(end - slices_.begin + slices_.step - Duration{1})};
}

void ProcessSlicer::spread(Weights& weights, HostTime begin, HostTime end, double amount) const {
  const auto [first, last] = slices_within(begin, end);
  for (std::size_t s = first; s < last; ++s) {
    const HostTime edge = slices_.begin + static_cast<std::int64_t>(s) * slices_.step;
    const Duration within = std::min(end, edge + slices_.step) - std::max(begin, edge);
    weights[s] += amount * seconds(within) / seconds(end - begin);
  }
}

void ProcessSlicer::add_portions(model::DomainId domain, HostTime begin, HostTime end,
                                 std::span<const Energy> portions, const EnergyOf& above) {
  const auto [first, last] = slices_within(begin, end);
  if (first == last) return;
  Weights parts;
  for (std::size_t s = first; s < last && last - first > 1; ++s) {
    const HostTime edge = slices_.begin + static_cast<std::int64_t>(s) * slices_.step;
    const Energy part = above(std::max(begin, edge), std::min(end, edge + slices_.step));
    parts.push_back(std::max(part.joules(), 0.0));
  }
  for (std::size_t i = 0; i < portions.size(); ++i) {
    if (portions[i] == Energy{} || !recording_.processes[i].in_tree) continue;
    auto& sums = energies_[{i, domain}];
    auto by_slice = apportion(portions[i], parts);
    if (by_slice.empty()) by_slice = {portions[i]};  // all of it lies in one slice
    for (std::size_t n = 0; n < by_slice.size(); ++n) {
      sums.add(first + n, by_slice[n].microjoules());
    }
  }
}

void ProcessSlicer::add(model::DomainId domain, std::size_t process, Energy energy,
                        const Weights& weights) {
  if (energy == Energy{} || slices_.count == 0 || !recording_.processes[process].in_tree) return;
  auto& sums = energies_[{process, domain}];
  const auto parts = apportion(energy, weights);
  if (parts.empty()) sums.known = false;
  for (std::size_t s = 0; s < parts.size(); ++s) sums.add(s, parts[s].microjoules());
}

ProcessSlicer::TracedWeights ProcessSlicer::traced_weights(const model::ActivityProfile& activity,
                                                           std::size_t process) const {
  TracedWeights out{no_weights(), no_weights()};
  const auto device =
      std::ranges::find_if(traced_, [&](auto& d) { return d.domain == activity.domain.id; });
  for (const auto& part : activity.by_process) {
    const auto& trace = recording_.traces[part.trace];
    if (process_of(recording_, trace) != process) continue;
    if (device == traced_.end()) continue;
    for (const auto& own : device->by_process) {
      if (own.trace != part.trace) continue;
      for (std::size_t s = 0; s < own.kernels.size(); ++s) {
        const HostTime edge = device->begin + static_cast<std::int64_t>(s) * device->step;
        spread(out.kernels, edge, edge + device->step, own.kernels[s]);
        spread(out.idle_between, edge, edge + device->step, own.idle_between[s]);
      }
    }
  }
  return out;
}

void ProcessSlicer::add_traced(const model::ActivityProfile& activity, const TracedSplit& split) {
  if (slices_.count == 0) return;
  std::map<std::size_t, Weights> used;
  for (const auto& slice :
       untraced_use(recording_, activity.domain, activity.begin, activity.end)) {
    for (const auto& claim : slice.claims) {
      if (owner_of(claim, recording_.processes) != Owner::kProcess) continue;
      auto& weights = used.try_emplace(claim.candidates.front(), no_weights()).first->second;
      spread(weights, slice.begin, slice.end, claim.weight * seconds(slice.end - slice.begin));
    }
  }
  const model::DomainId id = activity.domain.id;
  for (std::size_t i = 0; i < split.shares.size(); ++i) {
    if (!split.shares[i]) continue;
    const auto& share = *split.shares[i];
    Energy left = share.energy;
    const auto take = [&](const std::optional<Energy>& part, const Weights& weights) {
      if (!part) return;
      add(id, i, *part, weights);
      left -= *part;
    };
    const TracedWeights weights = traced_weights(activity, i);
    take(share.kernels, weights.kernels);
    take(share.idle_between, weights.idle_between);
    if (left == Energy{}) continue;
    const auto found = used.find(i);
    add(id, i, left, found == used.end() ? no_weights() : found->second);
  }
}

void ProcessSlicer::add_cpu_time(std::size_t process, HostTime begin, HostTime end, Duration time) {
  const auto [first, last] = slices_within(begin, end);
  auto& sums = cpu_times_[process];
  for (std::size_t s = first; s < last; ++s) {
    const HostTime edge = slices_.begin + static_cast<std::int64_t>(s) * slices_.step;
    const Duration within = std::min(end, edge + slices_.step) - std::max(begin, edge);
    sums.add(s, duration_of(seconds(time) * seconds(within) / seconds(end - begin)).count());
  }
}

model::ProcessSlices ProcessSlicer::finish() {
  const auto keep_main = [](auto& rows, const auto& total) {
    std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) {
      return std::abs(total(a)) > std::abs(total(b));
    });
    if (rows.size() > kMostRows) rows.resize(kMostRows);
  };
  std::vector<std::pair<std::pair<std::size_t, model::DomainId>, Sums>> energies;
  for (auto& entry : energies_) {
    if (entry.second.known && entry.second.total != 0) energies.push_back(std::move(entry));
  }
  keep_main(energies, [](const auto& entry) { return entry.second.total; });
  for (const auto& [key, sums] : energies) {
    auto& row = slices_.rows.emplace_back();
    row.process = recording_.processes[key.first].id;
    row.domain = key.second;
    row.first = sums.first;
    for (const auto value : sums.values) row.energies.push_back(Energy::microjoules(value));
  }
  std::vector<std::pair<std::size_t, Sums>> times(cpu_times_.begin(), cpu_times_.end());
  keep_main(times, [](const auto& entry) { return entry.second.total; });
  for (const auto& [process, sums] : times) {
    auto& row = slices_.cpu_times.emplace_back();
    row.process = recording_.processes[process].id;
    row.first = sums.first;
    for (const auto value : sums.values) row.times.push_back(Duration{value});
  }
  return std::move(slices_);
}

}  // namespace jouleprof::analysis
