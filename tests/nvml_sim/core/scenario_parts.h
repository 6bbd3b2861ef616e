// Reading of a scenario's parts: power, sensors, process trees. Errors go to the reader.
#pragma once

#include <filesystem>

#include "base/json/json_reader.h"
#include "nvml_sim/core/scenario.h"

namespace jouleprof::nvml_sim {

inline constexpr double kMaxSeconds = 1e9;
using Range = JsonRange;

inline constexpr Range kWatts{0, 1e6};
inline constexpr Range kSeconds{-kMaxSeconds, kMaxSeconds};
inline constexpr Range kRatio{0, 1};
inline constexpr Range kGain{-0.5, 0.5};
inline constexpr Range kMilliseconds{0, 60'000, 1e-3};
inline constexpr Range kPhase{-60'000, 60'000, 1e-3};
inline constexpr Range kRefresh{0.1, 60'000, 1e-3};
inline constexpr Range kWindow{0.01, 60'000, 1e-3};
inline constexpr Range kMebibytes{0, 1e9, 1048576};
inline constexpr Range kMegahertz{0, 100'000};
inline constexpr Range kPid{1, 1 << 30};
inline constexpr Range kInstance{0, 1000};

// The keys "tree", "cpus" and "sample_ms".
TreeSpec read_tree(JsonReader& o, bool required);

// `folder`: of the files of traces. `device`: has the default powers of the shape "follow".
PowerPart read_part(JsonReader& o, const DeviceSpec& device, const std::filesystem::path& folder);

// Absent keys keep the preset's values; null removes a sensor.
void read_sensors(JsonReader& o, SensorsSpec& sensors);

}  // namespace jouleprof::nvml_sim
