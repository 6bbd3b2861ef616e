// Which domain a traced chunk of activity belongs to, and which board is divided.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

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

// The instances of a board that MIG divides, in the recording's order.
std::vector<const model::Domain*> instances_of(const std::vector<model::Domain>& domains,
                                               model::DomainId board);

// The compute slices of an instance, of "NVIDIA H100 80GB HBM3 MIG 3g.40gb": 3. Its share of the
// board's multiprocessors is in proportion to them. 0: its name does not say it.
unsigned slices_of(const model::Domain& instance);

// Whether the use of `used` by a process is one of `domain`: the board itself, an instance of it,
// or what contains it.
bool is_use_of(const model::Recording& recording, model::DomainId used,
               const model::Domain& domain);

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
