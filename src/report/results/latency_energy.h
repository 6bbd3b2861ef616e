// Energy of one inference, from a power log and a latency, as people read it.
#pragma once

#include <string>
#include <vector>

#include "analysis/bench/latency_energy.h"
#include "report/render.h"

namespace jouleprof::report {

// A table for each device; `latency` is that of one inference.
std::string latency_energy_to_text(const std::vector<analysis::DevicePower>& devices,
                                   Duration latency, const TextOptions& text = {});

}  // namespace jouleprof::report
