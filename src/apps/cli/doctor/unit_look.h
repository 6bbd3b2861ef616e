// Whether the counters of this machine count in their stated units, as doctor prints it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "meters/all/open_meters.h"

namespace jouleprof::cli {

// By meter and domain, in words; of domains that have a counter and a power sensor.
using UnitLooks = std::map<std::pair<const meters::Meter*, model::DomainId>, std::string>;

// Reads such domains for some seconds; returns at once where there is none.
UnitLooks look_at_units(meters::MeterSet& meters);

}  // namespace jouleprof::cli
