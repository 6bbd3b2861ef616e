#include "analysis/domain_splitter.h"

#include <map>
#include <span>

namespace jouleprof::analysis {

std::optional<TracedSplit> DomainSplitter::split(model::DomainProfile& domain,
                                                 EnergyTimeline& timeline,
                                                 const BoardLevels& levels) const {
  const auto& parts = domain.levels;
  // Without the held level, all above rest is divided by use.
  const auto at_rest = parts.rest ? std::optional(parts.rest->energy) : parts.idle;
  if (!at_rest) {
    if (input_.recording.process_readings.empty()) return std::nullopt;
    domain.shares_include_rest = true;
    return split_whole(domain, timeline);
  }
  domain.idle_part = at_rest;
  const Energy left = domain.energy->energy - *at_rest;
  const auto held = parts.rest && parts.held ? std::optional(parts.held->energy) : std::nullopt;
  const auto* traced = activity_of(domain.domain);
  auto split = traced ? split_traced(input_.recording, *traced, left - held.value_or(Energy{}))
                      : split_by_use(domain, timeline, levels, left - held.value_or(Energy{}));
  if (traced && input_.slicer) input_.slicer->add_traced(*traced, split);
  if (held) add_held(split, domain.domain, levels, *held);
  return split;
}

const model::ActivityProfile* DomainSplitter::activity_of(const model::Domain& domain) const {
  if (domain.kind != model::DomainKind::kGpu) return nullptr;
  for (const auto& a : input_.activity) {
    if (a.domain.id == domain.id && a.idle_power) return &a;
  }
  return nullptr;
}

TracedSplit DomainSplitter::shares_of(const model::Domain& domain,
                                      const DomainEnergy& energy) const {
  OnPortions also;
  if (auto* slicer = input_.slicer) {
    also = [&, slicer](HostTime a, HostTime b, std::span<const Energy> portions) {
      slicer->add_portions(domain.id, a, b, portions, energy.part);
    };
  }
  const DomainSplit split = processes_.split(energy, also);
  TracedSplit all;
  all.within_command = split.within_command;
  all.others = split.others;
  all.unattributed = split.unattributed;
  all.contested = split.contested;
  all.contested_time = split.contested_time;
  all.command_bounds = split.command_bounds;
  for (std::size_t i = 0; i < split.shares.size(); ++i) {
    const Energy share = split.shares[i];
    auto& place = all.shares.emplace_back();
    if (share != Energy{}) place = model::ProcessShare{domain.id, share, {}, {}, {}};
    if (place && !split.bounds.empty()) place->bounds = split.bounds[i];
  }
  return all;
}

// Of an unknown energy at rest each process has its share, too: by the same rule, of all energy.
TracedSplit DomainSplitter::split_whole(const model::DomainProfile& domain,
                                        EnergyTimeline& timeline) const {
  return shares_of(domain.domain,
                   {domain.domain, domain.energy->energy, [&](HostTime a, HostTime b) {
                      const auto part = timeline.energy(a, b);
                      return part ? part->energy : Energy{};
                    }});
}

TracedSplit DomainSplitter::split_by_use(const model::DomainProfile& domain,
                                         EnergyTimeline& timeline, const BoardLevels& levels,
                                         Energy active) const {
  return shares_of(domain.domain, {domain.domain, active, [&](HostTime a, HostTime b) {
                                     const auto part = timeline.energy(a, b);
                                     if (!part) return Energy{};
                                     const auto inside = levels.split(*part, a, b);
                                     if (inside.active) return inside.active->energy;
                                     return part->energy -
                                            (inside.rest ? inside.rest->energy : Energy{});
                                   }});
}

void DomainSplitter::add_held(TracedSplit& split, const model::Domain& domain,
                              const BoardLevels& levels, Energy held) const {
  std::map<std::size_t, ProcessSlicer::Weights> listed;
  OnUse also;
  if (const auto* slicer = input_.slicer) {
    also = [&, slicer](HostTime a, HostTime b, std::size_t process, Duration time) {
      auto& weights = listed.try_emplace(process, slicer->no_weights()).first->second;
      slicer->spread(weights, a, b, seconds(time));
    };
  }
  const auto held_time = [&levels](HostTime a, HostTime b) {
    return levels.held_time(a, b).value_or(Duration{});
  };
  const auto parts = processes_.split_held(domain, held, held_time, also);
  split.others += parts.others;
  split.held_unowned += parts.unowned;
  for (std::size_t i = 0; i < parts.shares.size(); ++i) {
    const Energy part = parts.shares[i];
    if (part == Energy{}) continue;
    auto& share = split.shares[i];
    if (!share) share = model::ProcessShare{domain.id, {}, {}, {}, {}};
    share->energy += part;
    share->held = part;
    if (share->bounds) {
      share->bounds->low += part;
      share->bounds->high += part;
    }
    if (split.command_bounds) {
      split.command_bounds->low += part;
      split.command_bounds->high += part;
    }
    if (input_.slicer) input_.slicer->add(domain.id, i, part, listed[i]);
  }
}

}  // namespace jouleprof::analysis
