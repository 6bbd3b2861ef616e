// Which domain a traced chunk of activity belongs to, and which board is divided.
#pragma once

#include "model/recording.h"

namespace jouleprof::analysis {

// Whether `chunk` of `trace` is activity on the GPU `domain`, or on the GPU that contains it.
// Devices are matched by UUID; a device without one is the recording's only GPU.
bool is_on(const model::Recording& recording, const model::Trace& trace,
           const model::ActivityChunk& chunk, const model::Domain& domain);

// Whether MIG divides the board. Its sensors see all instances together, and whose they are is not
// known.
bool is_divided(const model::Recording& recording, const model::Domain& domain);

}  // namespace jouleprof::analysis
