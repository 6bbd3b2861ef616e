// What the Python package does for verbs: it writes Parquet files.
#pragma once

#include <string>
#include <vector>

namespace jouleprof::cli {

// Becomes `python` with main() of jouleprof._recorded.MODULE and these words. Returns, with an exit
// status, only where that cannot be started.
int become_python(const std::string& python, const std::string& module,
                  const std::vector<std::string>& words);

}  // namespace jouleprof::cli
