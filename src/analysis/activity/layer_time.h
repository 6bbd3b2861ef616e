// The energy of each layer on a CPU, in proportion to its run time.
#pragma once

#include <optional>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/timeline.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Divides the traced processes' share of the CPU's dynamic energy: among layers by the wall time of
// their own code; to backward passes, optimizer steps and code outside of all of them by the
// process's CPU time. Always an estimate, because all code is assumed to draw the same power.
// Absent when no layer was timed. Errors: corrupt when a chunk cannot be decoded.
Result<std::optional<model::ActivityProfile>> attribute_layer_time(
    const model::Recording& recording, const model::Domain& domain, EnergyTimeline& timeline,
    const BoardLevels& levels, std::optional<HostTime> from, std::optional<HostTime> to);

// The row of a layer without its energy. `first`: the row of its trace's first layer; `row`: its
// own.
inline model::ActivityRow layer_row(const model::Layer& layer, std::uint32_t first,
                                    std::size_t row) {
  model::ActivityRow out;
  out.name = layer.name;
  out.detail = layer.shapes.empty() ? layer.type : layer.type + " " + layer.shapes;
  if (layer.parent < row - first) out.parent = first + layer.parent;
  out.macs = layer.macs;
  out.parameters = layer.parameters;
  if (layer.compiled) out.reason = "compiled: one region, layers within are not separate";
  return out;
}

}  // namespace jouleprof::analysis
