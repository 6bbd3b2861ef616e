// The shared libraries of this process.
#pragma once

#include <string>
#include <vector>

namespace jouleprof::cupti {

// Paths of the loaded shared libraries.
std::vector<std::string> loaded_libraries();

bool is_loaded(const std::vector<std::string>& loaded, const char* name_start);

// The other tool that is likely to use CUPTI in this process: "Nsight Systems", "torch.profiler";
// "another profiler" where no library shows which.
std::string likely_profiler(const std::vector<std::string>& loaded);

}  // namespace jouleprof::cupti
