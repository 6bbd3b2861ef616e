// The command line as a function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jouleprof::cli {

// Runs `jouleprof ARGUMENTS...` and returns its exit status.
int main(std::vector<std::string> arguments);

// The texts of --help, taken from docs/cli.md.

extern const std::string_view kHelpPage;  // the whole page, as it was when the tool was built

// The first text block under the page's heading "## `title`"; empty when there is none.
std::string_view help_block(std::string_view title, std::string_view page = kHelpPage);

}  // namespace jouleprof::cli
