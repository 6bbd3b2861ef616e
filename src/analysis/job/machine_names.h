// Names of machines that can be distinguished.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace jouleprof::analysis {

// Of machines given as (name, boot id): for each that shares its name with another, by boot id, its
// name with the first digits of the boot id, as many as distinguish them (at least 8).
std::map<std::string, std::string> distinct_names(
    const std::vector<std::pair<std::string, std::string>>& machines);

}  // namespace jouleprof::analysis
