// What doctor found, as text and as JSON.
#pragma once

#include <string>

#include "meters/all/open_meters.h"

namespace jouleprof::cli {

// What a sensor will be used for, in a few words.
std::string use_of(const model::Sensor& sensor);

std::string doctor_text(const meters::MeterSet& found);
std::string doctor_json(const meters::MeterSet& found);  // schema jouleprof.doctor/1

}  // namespace jouleprof::cli
