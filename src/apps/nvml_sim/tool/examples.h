// The scenarios that come with the tool.
#pragma once

#include <map>
#include <string>

namespace jouleprof::nvml_sim {

// Text by name.
const std::map<std::string, std::string>& examples();

}  // namespace jouleprof::nvml_sim
