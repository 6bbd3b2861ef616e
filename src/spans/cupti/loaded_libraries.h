// What the process has loaded.
#pragma once

#include <string>
#include <vector>

namespace jouleprof::cupti {

// Paths of the shared libraries, as the loader knows them.
std::vector<std::string> loaded_libraries();

bool is_loaded(const std::vector<std::string>& loaded, const char* name_start);

// Who else is likely to use CUPTI in this process: "Nsight Systems", "torch.profiler"; "another
// profiler" where nothing tells.
std::string likely_profiler(const std::vector<std::string>& loaded);

}  // namespace jouleprof::cupti
