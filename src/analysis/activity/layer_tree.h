// Which layers lie within which.
#pragma once

#include "model/activity.h"

namespace jouleprof::analysis {

// Whether a layer is `outer` or lies within it.
inline bool is_within(const model::Trace& trace, std::uint32_t layer, std::uint32_t outer) {
  // A parent's number is lower than its children's.
  while (layer != model::kNone && layer > outer) layer = trace.layers[layer].parent;
  return layer == outer;
}

// Whether what a scope launched was of that layer's forward passes, layers within included.
inline bool is_forward_of(const model::Trace& trace, std::uint32_t scope, std::uint32_t layer) {
  if (scope == model::kNone) return false;
  const model::Scope& s = trace.scopes[scope];
  return s.phase != model::Phase::kBackward && is_within(trace, s.layer, layer);
}

}  // namespace jouleprof::analysis
