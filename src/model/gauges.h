// Readings of a board's clocks, temperatures, utilisation and limits.
#pragma once

#include <string_view>
#include <vector>

#include "model/recording.h"

namespace jouleprof::model {

// The readings of a domain's gauge, or of the board that contains it, in order of time. `name`: one
// of model/device/gauge_names.h, which state the units.
std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name);
// Those within [begin, end].
std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name, HostTime begin, HostTime end);

}  // namespace jouleprof::model
