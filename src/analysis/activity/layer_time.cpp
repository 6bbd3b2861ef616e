#include "analysis/activity/layer_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/processes/apportion.h"
#include "analysis/processes/processes.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/activity/activity_codec.h"
#include "model/record_fields.h"

namespace jouleprof::analysis {
namespace {

using model::kNone;
using model::Phase;

constexpr std::array kPhases{Phase::kForward, Phase::kBackward, Phase::kOptimizer};

// What of a chunk lies in the requested part: from and to these shares of its time. Code runs
// uniformly within a chunk.
struct Cut {
  double begin = 0;
  double end = 1;
};

struct PartTime {
  double wall = 0;  // seconds
  double cpu = 0;   // CPU seconds of the process; 0: not recorded
  std::uint64_t times = 0;

  // Counts of adjacent parts add up to that of the chunk.
  void add(const Cut& cut, std::uint64_t more, std::uint64_t wall_nanoseconds,
           std::uint64_t cpu_nanoseconds) {
    const auto until = [more](double share) {
      return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(more)));
    };
    const double seconds_of_nanosecond = 1e-9 * (cut.end - cut.begin);
    times += until(cut.end) - until(cut.begin);
    wall += seconds_of_nanosecond * static_cast<double>(wall_nanoseconds);
    cpu += seconds_of_nanosecond * static_cast<double>(cpu_nanoseconds);
  }
};

// Run times reported by the traced processes.
struct Times {
  std::vector<PartTime> own;                    // of each layer's own code, by row
  std::array<PartTime, kPhases.size()> layers;  // of layers, by phase
  std::array<PartTime, kPhases.size()>
      outside;  // of phases outside of layers; `times`: of whole phases
  HostTime begin = HostTime::max();
  HostTime end = HostTime::min();
};

PartTime sum_of(const std::array<PartTime, kPhases.size()>& parts) {
  PartTime sum;
  for (const PartTime& part : parts) sum.wall += part.wall, sum.cpu += part.cpu;
  return sum;
}

// The index of `phase` in kPhases; absent for kNone.
std::optional<std::size_t> place_of(Phase phase) {
  const auto found = std::ranges::find(kPhases, phase);
  if (found == kPhases.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kPhases.begin());
}

// Between `begin` and `end`, which lie in the chunk. False: damaged.
bool take(const model::ActivityChunk& chunk, HostTime begin, HostTime end, std::size_t first,
          std::size_t layers, Times& times) {
  const double length = std::max(seconds(chunk.end - chunk.begin), 1e-9);
  const Cut cut{seconds(begin - chunk.begin) / length,
                end < chunk.end ? seconds(end - chunk.begin) / length : 1};
  model::ActivityDecoder decoder(chunk.bytes);
  if (chunk.kind == model::ChunkKind::kLayers) {
    for (model::LayerEntry e; decoder.next(e);) {
      if (e.layer >= layers) return false;
      times.own[first + e.layer].add(cut, e.calls, e.wall_nanoseconds, e.cpu_nanoseconds);
      const auto phase = place_of(e.phase);
      if (!phase) return false;
      times.layers[*phase].add(cut, e.calls, e.wall_nanoseconds, e.cpu_nanoseconds);
    }
  } else {
    for (model::PhaseEntry e; decoder.next(e);) {
      const auto phase = place_of(e.phase);
      if (!phase) return false;
      times.outside[*phase].add(cut, e.times, e.wall_nanoseconds, e.cpu_nanoseconds);
    }
  }
  times.begin = std::min(times.begin, begin);
  times.end = std::max(times.end, end);
  return decoder.ok();
}

// Fills out.by_layer with rows without energy, and `times`. False: damaged.
bool take_times(const model::Recording& recording, std::optional<HostTime> from,
                std::optional<HostTime> to, model::ActivityProfile& out, Times& times) {
  for (const auto& trace : recording.traces) {
    const auto first = static_cast<std::uint32_t>(out.by_layer.size());
    for (const auto& layer : trace.layers) {
      out.by_layer.push_back(layer_row(layer, first, out.by_layer.size()));
    }
    times.own.resize(out.by_layer.size());
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kLayers && chunk.kind != model::ChunkKind::kPhases) {
        continue;
      }
      if ((from && chunk.end <= *from) || (to && chunk.begin >= *to)) continue;
      const HostTime begin = std::max(chunk.begin, from.value_or(chunk.begin));
      const HostTime end = std::min(chunk.end, to.value_or(chunk.end));
      if (!take(chunk, begin, end, first, trace.layers.size(), times)) return false;
    }
  }
  return true;
}

// The energy of the traced processes, and the weights by which layers and phases share it.
struct Division {
  Energy own;
  std::vector<double> weights;   // layers, phases outside of layers, time outside of both
  std::vector<double> by_phase;  // phases, time outside of them
  double outside = 0;            // wall seconds outside of layers and phases
};

Division divide(const model::Recording& recording, const model::ActivityProfile& out,
                EnergyTimeline& timeline, const BoardLevels& levels, const Times& times) {
  Division division;
  const ProcessSplitter processes(recording, out.begin, out.end);
  const DomainSplit split =
      processes.split({out.domain, out.measured.energy - out.idle, [&](HostTime a, HostTime b) {
                         const auto part = timeline.energy(a, b);
                         if (!part) return Energy{};
                         return part->energy - levels.split(*part, a, b).idle.value_or(Energy{});
                       }});
  double own_cpu = 0;
  for (std::size_t i = 0; i < recording.processes.size() && i < split.shares.size(); ++i) {
    if (!recording.processes[i].in_tree) continue;
    division.own += split.shares[i];
    own_cpu += seconds(processes.use().cpu_time[i].value_or(Duration{}));
  }

  const PartTime layers = sum_of(times.layers);
  const PartTime phases = sum_of(times.outside);
  division.outside = std::max(seconds(out.end - out.begin) - layers.wall - phases.wall, 0.0);
  const double cpu = layers.cpu + phases.cpu;
  double per_cpu_second = 0;  // weight of a CPU second; 0: weights are wall time
  double rest = division.outside;
  if (cpu > 0) {
    // A process may sleep outside of layers and use all cores within them, so wall time misleads.
    // Its CPU time may be read more rarely than this interval is long: the CPU time in layers is
    // known, and the use by other processes is assumed to be uniform.
    const double others = std::max(seconds(processes.use().machine_cpu_time) - own_cpu, 0.0);
    const double all = std::max(own_cpu, cpu);
    division.own = Energy::joules((division.own + split.others).joules() * all / (all + others));
    per_cpu_second = layers.cpu > 0 ? layers.wall / layers.cpu : 1.0;
    rest = per_cpu_second * (all - cpu);
  }
  for (const PartTime& part : times.own) division.weights.push_back(part.wall);
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    const PartTime& part = times.outside[i];
    division.weights.push_back(per_cpu_second > 0 ? per_cpu_second * part.cpu : part.wall);
    division.by_phase.push_back(times.layers[i].wall + division.weights.back());
  }
  division.weights.push_back(rest);
  division.by_phase.push_back(rest);
  return division;
}

void fill(model::ActivityProfile& out, const Times& times, const Division& division) {
  auto energies = apportion(division.own, division.weights);
  energies.resize(division.weights.size());
  const double relative = out.measured.energy > Energy{}
                              ? out.measured.error.joules() / out.measured.energy.joules()
                              : 0.0;
  const auto figure = [&](Energy energy) {
    model::Measurement m = out.measured;
    m.energy = energy;
    m.repeatability = Energy::joules(kErrors.layer_time * energy.joules());
    m.error = Energy::joules(std::hypot(kErrors.layer_time, relative) * energy.joules());
    if (out.measured.energy > Energy{}) {
      m.offset =
          Energy::joules(m.offset.joules() * (energy.joules() / out.measured.energy.joules()));
    }
    m.provenance = model::combine(m.provenance, model::Provenance::kEstimated);
    m.method = "time";
    return m;
  };
  std::vector<Energy> inclusive = energies;
  for (std::size_t i = out.by_layer.size(); i-- > 0;) {
    auto& row = out.by_layer[i];
    row.count = times.own[i].times;
    row.busy = duration_of(times.own[i].wall);
    if (row.count > 0) row.energy = figure(energies[i]);
    if (row.count > 0 || inclusive[i] > Energy{}) row.inclusive = figure(inclusive[i]);
    if (row.parent != kNone) inclusive[row.parent] += inclusive[i];
    out.kernels += energies[i];
  }
  const auto add_row = [&](std::vector<model::ActivityRow>& rows, std::string name,
                           std::uint64_t times_ran, double wall, Energy energy) {
    if (energy <= Energy{}) return;
    model::ActivityRow& row = rows.emplace_back();
    row.name = std::move(name);
    row.count = times_ran;
    row.busy = duration_of(wall);
    row.energy = row.inclusive = figure(energy);
  };
  const std::size_t first_phase = times.own.size();
  auto phase_energies = apportion(division.own, division.by_phase);
  phase_energies.resize(division.by_phase.size());
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    const std::string name(model::phase_name(kPhases[i]));
    const PartTime& alone = times.outside[i];
    add_row(out.by_layer, fmt::format("({} outside of layers)", name), alone.times, alone.wall,
            energies[first_phase + i]);
    out.kernels += energies[first_phase + i];
    add_row(out.by_phase, name, alone.times, times.layers[i].wall + alone.wall, phase_energies[i]);
  }
  add_row(out.by_layer, "(outside of layers)", 0, division.outside, energies.back());
  add_row(out.by_phase, "(no phase)", 0, division.outside, phase_energies.back());
  out.kernels += energies.back();
  for (std::uint32_t i = 0; i < out.by_layer.size(); ++i) {
    const auto& row = out.by_layer[i];
    if (!row.energy) continue;
    auto& stack = out.stacks.emplace_back();
    stack.layer = i;
    stack.busy = row.busy;
    stack.energy = row.energy->energy;
  }
  out.unattributed = out.measured.energy - out.idle - out.kernels;
}

}  // namespace

Result<std::optional<model::ActivityProfile>> attribute_layer_time(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to) {
  model::ActivityProfile out;
  out.domain = domain;
  Times times;
  if (!take_times(recording, from, to, out, times)) {
    return fail(Errc::kCorrupt, "the recording's run times of layers are damaged");
  }
  const auto extent = timeline.extent();
  if (times.end <= times.begin || !extent) return std::nullopt;
  out.begin = std::max(times.begin, extent->begin);
  out.end = std::min(times.end, extent->end);
  if (out.end <= out.begin) return std::nullopt;
  const auto measured = timeline.energy(out.begin, out.end);
  if (!measured) return std::nullopt;
  out.measured = *measured;
  out.method = "time on the CPU";

  out.levels = levels.split(*measured, out.begin, out.end);
  if (levels.rest) {
    out.idle_power = levels.rest->power;
    out.idle_error = levels.rest->error;
    out.idle = out.levels.idle.value_or(Energy{});
  } else {
    out.warnings.push_back("idle power is not known: layers' energies include it");
  }
  for (const LostEnd& lost : lost_ends(recording, from, to)) {
    out.warnings.push_back(lost_text(recording, lost) + "; no layer has its energy");
  }
  fill(out, times, divide(recording, out, timeline, levels, times));
  return out;
}

}  // namespace jouleprof::analysis
