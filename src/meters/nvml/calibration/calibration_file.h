// calibration.json: what is known of each GPU of a user's machines, by UUID.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::meters::nvml {

// $XDG_STATE_HOME/jouleprof/calibration.json, else ~/.local/state/jouleprof/calibration.json.
// Empty where neither variable is set.
std::filesystem::path calibration_path();

// The devices of the file: an object with an object for each UUID; of simulated ones those of the
// scenario of now (JOULEPROF_NVML_SCENARIO). Empty without a file, and for a
// damaged one: what it holds only refines other figures, and can be measured again.
// Errors: not_found where there is no path; of the file system.
Result<nlohmann::json> read_devices();

// Changes the devices. Two processes that do so at the same time both succeed: the second one gets
// the devices that the first one stored. `what` is stored, for messages ("the calibration").
// Errors: as read_devices, and of writing: then nothing was changed.
Result<void> change_devices(std::string_view what,
                            const std::function<void(nlohmann::json& devices)>& change);

// Removes all that is stored of the GPUs with these UUIDs. Returns of how many something was
// stored. Errors: as change_devices.
Result<std::size_t> forget_devices(const std::vector<std::string>& uuids);

// Removes all that is stored of every GPU of this machine, or scenario; otherwise the same.
Result<std::size_t> forget_all_devices();

}  // namespace jouleprof::meters::nvml
