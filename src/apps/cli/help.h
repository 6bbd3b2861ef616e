// The texts of --help, taken from docs/cli.md.
#pragma once

#include <string_view>

namespace jouleprof::cli {

extern const std::string_view kHelpPage;  // the whole page, as it was when the tool was built

// The first text block under the page's heading "## `title`"; empty when there is none.
std::string_view help_block(std::string_view title, std::string_view page = kHelpPage);

}  // namespace jouleprof::cli
