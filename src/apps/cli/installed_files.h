// Finds the installed files that traced programs load.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// The folders to search, in order, for a tool in `folder`: of an installation, of the Python
// package, of the build tree.
std::vector<std::filesystem::path> inject_library_places(const std::filesystem::path& folder);
std::vector<std::filesystem::path> python_hook_places(const std::filesystem::path& folder);

// libjouleprof_inject.so: the file that JOULEPROF_INJECT_LIBRARY names, else one of the places
// above. Errors: not_found, with the places that were tried.
Result<std::filesystem::path> find_inject_library();

// The folder of our sitecustomize.py. Errors: as above.
Result<std::filesystem::path> find_python_hook();

}  // namespace jouleprof::cli
