// The command line as a function.
#pragma once

#include <string>
#include <vector>

namespace jouleprof::cli {

// Runs `jouleprof ARGUMENTS...` and returns its exit status.
int main(std::vector<std::string> arguments);

}  // namespace jouleprof::cli
