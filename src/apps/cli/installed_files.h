// What is installed beside the tool and loaded by the programs that it traces.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Where it may lie, likeliest first, for a tool that lies in `folder`; in an installation, in the
// Python package, in the build tree.
std::vector<std::filesystem::path> inject_library_places(const std::filesystem::path& folder);
std::vector<std::filesystem::path> python_hook_places(const std::filesystem::path& folder);

// libjouleprof_inject.so: what JOULEPROF_INJECT_LIBRARY names, or beside the tool. Errors:
// not_found, with the places that were tried.
Result<std::filesystem::path> find_inject_library();

// The folder of our sitecustomize.py. Errors: as above.
Result<std::filesystem::path> find_python_hook();

}  // namespace jouleprof::cli
