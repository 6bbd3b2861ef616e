// Meters with a web server: Redfish BMCs, Shelly and Tasmota plugs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "meters/wall/wall_source.h"

namespace jouleprof::meters {

// For kinds "redfish", "shelly" and "tasmota". Errors: as of open_wall_source; not_found without
// libcurl, which is loaded at run time.
Result<std::unique_ptr<WallSource>> open_web_meter(const WallSpec& spec);

// The watts of an answer; `channel`: of a plug with several sockets. Errors: corrupt without any.

// EnvironmentMetrics, Power, or the metrics of power supplies, whose inputs are summed.
Result<double> redfish_watts(std::string_view json);
// Of Shelly.GetStatus (second generation and later) or /status (first).
Result<double> shelly_watts(std::string_view json, int channel);
Result<double> tasmota_watts(std::string_view json, int channel);

}  // namespace jouleprof::meters
