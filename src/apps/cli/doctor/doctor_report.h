// The result of `doctor` as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "meters/all/open_meters.h"

namespace jouleprof::cli {

// What a sensor is used for, in a few words.
std::string use_of(const model::Sensor& sensor);

std::string doctor_text(const meters::MeterSet& found);
// Schema jouleprof.doctor/1. `calibration`: its result, where it was requested.
std::string doctor_json(const meters::MeterSet& found,
                        const std::optional<Result<void>>& calibration);

}  // namespace jouleprof::cli
