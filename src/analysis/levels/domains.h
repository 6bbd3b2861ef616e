// Which domain a traced chunk of activity belongs to, and which board is divided.
#pragma once

#include <algorithm>
#include <string>

#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Whether `chunk` of `trace` is activity on the GPU `domain`, or on the GPU that contains it.
// Devices are matched by UUID; a device without one is the recording's only GPU.
bool is_on(const model::Recording& recording, const model::Trace& trace,
           const model::ActivityChunk& chunk, const model::Domain& domain);

// Whether MIG divides the board. Its sensors see all instances together, and whose they are is not
// known.
bool is_divided(const model::Recording& recording, const model::Domain& domain);

// How warnings name a domain.

// The device, "gpu0"; of a part of one also which: "gpu0 memory", "package-0 cpu cores".
inline std::string label_of(const model::Domain& domain) {
  if (!domain.parent || domain.kind == model::DomainKind::kGpu) return domain.device;
  if (domain.kind == model::DomainKind::kGpuMemory) return domain.device + " memory";
  std::string kind(model::to_string(domain.kind));
  std::replace(kind.begin(), kind.end(), '_', ' ');
  return domain.device + ' ' + kind;
}

}  // namespace jouleprof::analysis
