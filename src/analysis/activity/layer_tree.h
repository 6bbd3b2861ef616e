// Layers and the layers that contain them.
#pragma once

#include "model/activity/activity_profile.h"

namespace jouleprof::analysis {

// Whether a layer is `outer` or lies within it.
inline bool is_within(const model::Trace& trace, std::uint32_t layer, std::uint32_t outer) {
  // A parent's number is lower than its children's.
  while (layer != model::kNone && layer > outer) layer = trace.layers[layer].parent;
  return layer == outer;
}

// Whether launches of a scope belong to that layer's forward passes, layers within included.
inline bool is_forward_of(const model::Trace& trace, std::uint32_t scope, std::uint32_t layer) {
  if (scope == model::kNone) return false;
  const model::Scope& s = trace.scopes[scope];
  return s.phase != model::Phase::kBackward && is_within(trace, s.layer, layer);
}

// The same, of its forward and backward passes.
inline bool is_pass_of(const model::Trace& trace, std::uint32_t scope, std::uint32_t layer) {
  return scope != model::kNone && is_within(trace, trace.scopes[scope].layer, layer);
}

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
