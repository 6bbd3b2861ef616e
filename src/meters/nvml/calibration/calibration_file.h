// calibration.json: what is known of each GPU of a user's machines, by UUID.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace jouleprof::meters::nvml {

// $XDG_STATE_HOME/jouleprof/calibration.json, else ~/.local/state/jouleprof/calibration.json.
// Empty where neither variable is set.
std::filesystem::path calibration_path();

// The devices of the file: an object with an object for each UUID. Empty without a file, and for a
// damaged one: what it holds only refines other figures, and can be measured again.
// Errors: not_found where there is no path; of the file system.
Result<nlohmann::json> read_devices();

// Changes the devices. Two processes that do so at the same time both succeed: the second one gets
// the devices that the first one stored. `what` is stored, for messages ("the calibration").
// Errors: as read_devices, and of writing: then nothing was changed.
Result<void> change_devices(std::string_view what,
                            const std::function<void(nlohmann::json& devices)>& change);

}  // namespace jouleprof::meters::nvml
