// Showing a page that was written.
#pragma once

#include <string>

#include "base/result.h"

namespace jouleprof::cli {

// Opens the file with xdg-open, and does not wait for the browser. Errors: invalid_argument for the
// standard output; unavailable when there is no xdg-open.
Result<void> open_in_browser(const std::string& path);

}  // namespace jouleprof::cli
