#include "analysis/energy_split.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "analysis/levels/domains.h"
#include "analysis/levels/rest_level.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::CommandEnergy;
using model::DomainProfile;
using model::Measurement;

constexpr Duration kSustained = std::chrono::milliseconds{500};
constexpr auto kAllTime = [](HostTime begin, HostTime end) { return end - begin; };

Energy sum_of(const std::vector<Energy>& energies) {
  return std::accumulate(energies.begin(), energies.end(), Energy{});
}

// Energy that the command may have or not.
void add_undecided(TracedSplit& split, Energy energy) {
  split.unattributed += energy;
  if (split.command_bounds) split.command_bounds->high += energy;
}

// Of energy that was divided by use, so much may be at rest, or held by others.
void lower_bounds(TracedSplit& split, Energy most, Energy divided) {
  const double kept =
      divided > Energy{} ? std::clamp(1 - most.joules() / divided.joules(), 0.0, 1.0) : 0.0;
  const auto lower = [kept](std::optional<model::DivisionBounds>& bounds) {
    if (bounds) bounds->low = Energy::joules(kept * bounds->low.joules());
  };
  lower(split.command_bounds);
  for (auto& share : split.shares) {
    if (share) lower(share->bounds);
  }
}

bool is_used_by_others(const DomainProfile& d, const BoardLevels& levels) {
  const Energy others = d.others.value_or(Energy{});
  if (is_gpu(d.domain.kind)) return levels.shared || others > Energy{};
  return analysis::is_used_by_others(others, *d.energy);
}

// Energy is divided by use, as if a unit of it drew the same power in all families. How wrong that
// is where it draws twice as much in one of them.
double division_joules(Energy own, Energy others) {
  const double a = std::max(own.joules(), 0.0);
  const double b = std::max(others.joules(), 0.0);
  return a + b > 0 ? a * b / (a + b + std::min(a, b)) : 0;
}

// By how much a bound that is `apart` from `own` is wider than that.
Energy beyond_division(Energy apart, Energy own, Energy others) {
  return Energy::joules(std::max(apart.joules() - division_joules(own, others), 0.0));
}

// Of the sensor's error, what a part of its energy has.
double part_of(const Measurement& whole, Energy part) {
  if (whole.energy <= Energy{}) return 1;
  return std::min(std::abs(part.joules() / whole.energy.joules()), 1.0);
}

CommandEnergy all_of(const DomainProfile& d) {
  const Energy rest = d.levels.rest ? d.levels.rest->energy : Energy{};
  CommandEnergy all{*d.energy, d.energy->energy - rest, {}, {}, false};
  if (d.levels.rest) all.rest = rest;
  return all;
}

}  // namespace

std::optional<TracedSplit> DomainSplitter::split(model::DomainProfile& domain,
                                                 EnergyTimeline& timeline,
                                                 const BoardLevels& levels) const {
  const auto& parts = domain.levels;
  // Without the held level, all above rest is divided by use.
  const auto at_rest = parts.rest ? std::optional(parts.rest->energy) : parts.idle;
  if (!at_rest) {
    if (input_.recording.process_readings.empty()) return std::nullopt;
    domain.shares_include_rest = true;
    auto split = split_whole(domain, timeline);
    if (levels.shared)
      lower_bounds(split, unknown_level(domain, timeline, levels), domain.energy->energy);
    return split;
  }
  domain.idle_part = at_rest;
  const Energy left = domain.energy->energy - *at_rest;
  const auto held = parts.rest && parts.held ? std::optional(parts.held->energy) : std::nullopt;
  const auto* traced = activity_of(domain.domain);
  auto split = traced ? split_traced(input_.recording, *traced, left - held.value_or(Energy{}))
                      : split_by_use(domain, timeline, levels, left - held.value_or(Energy{}));
  if (traced && input_.slicer) input_.slicer->add_traced(*traced, split);
  if (held) add_held(split, domain.domain, levels, *held);
  if (levels.shared && !held && parts.rest) {
    const auto by_holder =
        processes_.split_held(domain.domain, unknown_level(domain, timeline, levels), kAllTime);
    lower_bounds(split, by_holder.others + by_holder.unowned, left);
  }
  if (levels.shared && !parts.rest) {
    // Of rest and held together, what the command held is its own.
    const auto by_holder = processes_.split_held(domain.domain, *at_rest, kAllTime);
    const Energy own = sum_of(by_holder.shares);
    *domain.idle_part -= own;
    add_undecided(split, own);
  }
  return split;
}

Energy DomainSplitter::unknown_level(const model::DomainProfile& domain, EnergyTimeline& timeline,
                                     const BoardLevels& levels) const {
  const Duration length = input_.end - input_.begin;
  const Power rest = levels.rest ? levels.rest->power : Power{};
  // Held, where rest is known: a board that is not held draws less than one that is.
  const auto lowest = lowest_sustained(timeline, kSustained, [&](const model::PowerStep& step) {
    return !levels.rest || levels.held_time(step.begin, step.end) == step.end - step.begin;
  });
  const Power mean = domain.energy->energy / length;
  return std::max(std::min(lowest.value_or(mean), mean) - rest, Power{}) * length;
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
  all.bounds = split.bounds;
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
  if (split.command_bounds) {
    split.command_bounds->low += parts.command_bounds.low;
    split.command_bounds->high += parts.command_bounds.high + parts.unowned;
  }
  for (std::size_t i = 0; i < parts.shares.size(); ++i) {
    const Energy part = parts.shares[i];
    if (part == Energy{}) continue;
    auto& share = split.shares[i];
    if (!share) {
      share = model::ProcessShare{domain.id, {}, {}, {}, {}};
      if (!split.bounds.empty()) share->bounds = split.bounds[i];
    }
    share->energy += part;
    share->held = part;
    if (share->bounds) {
      share->bounds->low += parts.bounds[i].low;
      share->bounds->high += parts.bounds[i].high;
    }
    if (input_.slicer) input_.slicer->add(domain.id, i, part, listed[i]);
  }
}

bool is_used_by_others(Energy others, const model::Measurement& whole) {
  return others.joules() > kErrors.used_by_others * whole.energy.joules();
}

std::string no_command_reason(const model::Recording& recording) {
  const auto& source = recording.run.source;
  if (source == "monitor" || source == "serve")
    return "the recording is of a machine, not a command";
  if (source == "library" && recording.process_readings.empty()) {
    return "a program that records by itself reads no processes: energies are of whole devices";
  }
  return {};
}

std::optional<CommandEnergy> command_energy(const model::Recording& recording,
                                            const DomainProfile& d, Energy processes,
                                            const BoardLevels& levels) {
  if (!d.energy || !no_command_reason(recording).empty()) return std::nullopt;
  if (recording.process_readings.empty()) return all_of(d);
  const Measurement& whole = *d.energy;
  const Energy others = d.others.value_or(Energy{});
  const Energy unattributed = d.unattributed.value_or(Energy{});
  CommandEnergy out;
  out.processes = processes;
  if (d.idle_part && !is_used_by_others(d, levels)) {
    // Energy at rest as it was learnt may exceed what the device took; a part never exceeds the
    // whole.
    out.rest = std::max(std::min(*d.idle_part, whole.energy - processes), Energy{});
  }
  out.undivided = std::max(unattributed, Energy{}) + d.held_unowned.value_or(Energy{});
  // Parts may exceed the whole.
  Energy also = std::max(-unattributed, Energy{});
  Energy below;
  Energy above;
  if (const auto& bounds = d.command_bounds) {
    below = beyond_division(processes - bounds->low, processes, others);
    // The upper bound holds what is undivided, too.
    above = beyond_division(bounds->high - processes - out.undivided, processes, others);
  }
  if (out.rest && levels.may_be_shared) below += *out.rest;
  // What is at rest by mistake was of others, or the other way round.
  if (out.rest && d.levels.rest) also += std::clamp(others, Energy{}, d.levels.rest->repeatability);
  if (!out.rest && d.levels.rest) {
    const Energy dynamic = whole.energy - d.levels.rest->energy;
    const double share = dynamic > Energy{} ? processes.joules() / dynamic.joules() : 0;
    also += Energy::joules(std::clamp(share, 0.0, 1.0) * d.levels.rest->repeatability.joules());
  }
  set_interval(out, whole, others, also + below, also + above);
  return out;
}

void set_interval(CommandEnergy& own, const Measurement& whole, Energy others, Energy below,
                  Energy above) {
  own.energy = whole;
  own.energy.energy = own.processes + own.rest.value_or(Energy{});
  const double part = part_of(whole, own.energy.energy);
  // An interval around 0 has no shift.
  if (own.energy.energy <= Energy{}) below = above = std::max(below, above);
  const double repeatability = whole.repeatability.joules();
  const double division = division_joules(own.processes, others);
  const double both = part * repeatability + division;
  const double gain = model::gain_joules(whole);
  // The upper bound is of what is undivided, too, of which the sensor is as uncertain and may read
  // as low.
  const double part_above = part_of(whole, own.energy.energy + own.undivided);
  const double up =
      std::hypot(part_above * repeatability + division + above.joules(), part_above * gain) +
      whole.shift * own.undivided.joules();
  const double down =
      own.energy.energy > Energy{} ? std::hypot(both + below.joules(), part * gain) : up;
  own.energy.repeatability = Energy::joules(both + (below + above).joules() / 2);
  own.energy.offset = Energy::joules(part * whole.offset.joules());
  own.energy.error = Energy::joules((down + up) / 2);
  if (up != down) own.energy.shift += (up - down) / 2 / own.energy.energy.joules();
  // It had no more than the whole, whatever the division leaves open.
  const Energy most = std::max(whole.high() - own.undivided, own.energy.energy);
  if (own.energy.high() > most && own.energy.energy > Energy{}) {
    const Energy low = own.energy.energy - own.energy.below();
    own.energy.error = Energy::joules((most - low).joules() / 2);
    own.energy.shift = (most + low).joules() / 2 / own.energy.energy.joules() - 1;
  }
  // What was divided off is within the sensor's own error.
  const bool is_alone = others + own.undivided <= whole.farthest();
  if (!is_alone) {
    own.energy.provenance = combine(whole.provenance, model::Provenance::kEstimated);
  }
}

void widen_by_socket(std::vector<DomainProfile>& domains) {
  std::map<model::DomainKind, std::vector<DomainProfile*>> sockets;
  for (auto& d : domains) {
    if (follows_cpu_time(d.domain.kind) && d.command && d.command_bounds)
      sockets[d.domain.kind].push_back(&d);
  }
  const auto above_rest = [](const DomainProfile& d) {
    return d.command->processes + d.others.value_or(Energy{}) + d.unattributed.value_or(Energy{});
  };
  for (auto& [kind, all] : sockets) {
    if (all.size() < 2) continue;
    Energy own, others;  // the most that they can have of all sockets
    for (const DomainProfile* d : all) {
      const Energy division =
          Energy::joules(division_joules(d->command->processes, d->others.value_or(Energy{})));
      own += d->command_bounds->high + division;
      others += above_rest(*d) - d->command_bounds->low + division;
    }
    for (DomainProfile* d : all) {
      auto& c = *d->command;
      auto& bounds = *d->command_bounds;
      bounds.low = std::min(bounds.low, std::max(above_rest(*d) - others, Energy{}));
      bounds.high = std::max(bounds.high, std::min(above_rest(*d), own));
      const double whole = std::max(d->energy->energy.joules(), 1e-6);
      const Energy rest = c.rest.value_or(Energy{});
      const Energy level = d->levels.rest ? d->levels.rest->repeatability : Energy{};
      const double low = (rest + bounds.low - level).joules() * d->energy->low().joules() / whole;
      const double high =
          (rest + bounds.high + level).joules() * d->energy->high().joules() / whole;
      c.on_socket = {std::min(c.low(), Energy::joules(std::max(low, 0.0))),
                     std::max(c.high(), std::min(Energy::joules(high), d->energy->high()))};
    }
  }
}

}  // namespace jouleprof::analysis
