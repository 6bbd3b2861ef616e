// The parts of a scenario that have readers of their own: power, sensors, process trees.
#pragma once

#include <filesystem>

#include "apps/nvml_sim/core/json_object.h"
#include "apps/nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

// All note what is wrong in the object's errors.

// `folder`: where the files of traces are looked for. idle and full: the defaults of "follow".
PowerPart read_part(JsonObject& o, double idle, double full, const std::filesystem::path& folder);

// Absent keys keep the preset's; null takes a sensor away.
void read_sensors(JsonObject& o, SensorsSpec& sensors);

// The key "tree" of `o`.
TreeTarget read_tree(JsonObject& o);

// The key "code" of `o`: an NVML_ERROR_... name.
void read_code(JsonObject& o, abi::Return& code);

// A key in milliseconds into seconds.
void read_milliseconds(JsonObject& o, const char* key, double& seconds, double min_ms,
                       double max_ms);

}  // namespace jouleprof::nvml_sim
