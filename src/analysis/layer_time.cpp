#include "analysis/layer_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/apportion.h"
#include "analysis/idle.h"
#include "analysis/processes.h"
#include "model/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using model::kNone;

constexpr double kModelError =
    0.3;  // of a layer's energy: layers' power differs, time is all we know

// Seconds that layers ran in their own code, by row.
struct Times {
  std::vector<double> wall;
  std::vector<std::uint64_t> calls;
  double cpu = 0;  // of the processes, while they were in layers; 0: not taken
  HostTime begin = HostTime::max();
  HostTime end = HostTime::min();
};

}  // namespace

Result<std::optional<model::ActivityProfile>> attribute_layer_time(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    std::optional<HostTime> from, std::optional<HostTime> to) {
  model::ActivityProfile out;
  out.domain = domain;
  Times times;
  for (const auto& trace : recording.traces) {
    const auto first = static_cast<std::uint32_t>(out.by_layer.size());
    for (const auto& layer : trace.layers) {
      model::ActivityRow row;
      row.name = layer.name;
      row.detail = layer.shapes.empty() ? layer.type : layer.type + " " + layer.shapes;
      if (layer.parent < out.by_layer.size() - first) row.parent = first + layer.parent;
      row.macs = layer.macs;
      row.parameters = layer.parameters;
      if (layer.compiled) row.reason = "compiled: layers within are not told apart";
      out.by_layer.push_back(std::move(row));
    }
    times.wall.resize(out.by_layer.size());
    times.calls.resize(out.by_layer.size());
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kLayers) continue;
      if ((from && chunk.end <= *from) || (to && chunk.begin >= *to)) continue;
      model::ActivityDecoder decoder(chunk.bytes);
      for (model::LayerEntry e; decoder.next(e);) {
        if (e.layer >= trace.layers.size()) {
          return fail(Errc::kCorrupt,
                      "the recording's times of layers name a layer that is not there");
        }
        times.wall[first + e.layer] += 1e-9 * static_cast<double>(e.wall_nanoseconds);
        times.calls[first + e.layer] += e.calls;
        times.cpu += 1e-9 * static_cast<double>(e.cpu_nanoseconds);
      }
      if (!decoder.ok())
        return fail(Errc::kCorrupt, "the recording's times of layers can't be read");
      times.begin = std::min(times.begin, chunk.begin);
      times.end = std::max(times.end, chunk.end);
    }
  }
  const auto extent = timeline.extent();
  if (out.by_layer.empty() || times.end <= times.begin || !extent) return std::nullopt;
  out.begin = std::max(times.begin, extent->begin);
  out.end = std::min(times.end, extent->end);
  if (out.end <= out.begin) return std::nullopt;
  const auto measured = timeline.energy(out.begin, out.end);
  if (!measured) return std::nullopt;
  out.measured = *measured;
  out.method = "time on the CPU";

  const HostTime work_begin = recording.run.work_begin.value_or(out.begin);
  const HostTime work_end = recording.run.work_end.value_or(out.end);
  const auto idle = idle_power(timeline, domain, recording, work_begin, work_end);
  const Duration span = out.end - out.begin;
  Energy idle_part;
  if (idle.power) {
    out.idle_power = idle.power->power;
    out.idle_error = idle.power->error;
    idle_part = std::min(idle.power->power * span, measured->energy);
  } else {
    out.warnings.push_back("idle power is not known: layers' energies include it");
  }
  out.idle = idle_part;

  // What belongs to the traced processes, of that span.
  const ProcessSplitter processes(recording, out.begin, out.end);
  const DomainSplit split =
      processes.split({domain, measured->energy, idle_part,
                       [&](HostTime a, HostTime b) {
                         const auto part = timeline.energy(a, b);
                         return part ? part->energy : Energy{};
                       },
                       idle.power ? std::optional<Power>(idle.power->power) : std::nullopt});
  Energy own;
  double own_cpu = 0;
  for (std::size_t i = 0; i < recording.processes.size() && i < split.shares.size(); ++i) {
    if (!recording.processes[i].in_tree) continue;
    own += split.shares[i];
    own_cpu += seconds(processes.use().cpu_time[i].value_or(Duration{}));
  }

  // Layers, and the time outside of them.
  std::vector<double> weights = times.wall;
  double in_layers = 0;
  for (const double w : weights) in_layers += w;
  const double outside = std::max(seconds(span) - in_layers, 0.0);
  weights.push_back(outside);
  if (times.cpu > 0) {
    // Outside of layers a process may sleep, and within them run on all cores. Readings of its CPU
    // time may lie further apart than all of this took: what it used in layers is known, and what
    // others did is taken as even.
    const double others = std::max(seconds(processes.use().machine_cpu_time) - own_cpu, 0.0);
    const double all = std::max(own_cpu, times.cpu);
    own = Energy::joules((own + split.others).joules() * all / (all + others));
    weights.back() = in_layers * (all - times.cpu) / times.cpu;
  }
  auto energies = apportion(own, weights);
  energies.resize(weights.size());
  const double relative =
      measured->energy > Energy{} ? measured->error.joules() / measured->energy.joules() : 0.0;
  const auto figure = [&](Energy energy) {
    model::Measurement m = *measured;
    m.energy = energy;
    m.repeatability = Energy::joules(kModelError * energy.joules());
    m.error = Energy::joules(std::hypot(kModelError, relative) * energy.joules());
    m.provenance = model::combine(m.provenance, model::Provenance::kEstimated);
    m.method = "time";
    return m;
  };
  std::vector<Energy> inclusive = energies;
  for (std::size_t i = out.by_layer.size(); i-- > 0;) {
    auto& row = out.by_layer[i];
    row.count = times.calls[i];
    row.busy = duration_of(times.wall[i]);
    if (times.calls[i] > 0) row.energy = figure(energies[i]);
    if (times.calls[i] > 0 || inclusive[i] > Energy{}) row.inclusive = figure(inclusive[i]);
    if (row.parent != kNone) inclusive[row.parent] += inclusive[i];
    out.kernels += energies[i];
  }
  if (energies.back() > Energy{}) {
    model::ActivityRow& row = out.by_layer.emplace_back();
    row.name = "(outside of layers)";
    row.busy = duration_of(outside);
    row.energy = row.inclusive = figure(energies.back());
    out.kernels += energies.back();
  }
  out.unattributed = measured->energy - out.idle - out.kernels;
  return out;
}

}  // namespace jouleprof::analysis
