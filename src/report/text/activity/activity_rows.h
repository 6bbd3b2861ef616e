// Kernels' names in the columns of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace jouleprof::report {

// Each name in at most `width` columns. Without the return type and the parameters, which say what
// the template arguments say; what is still too long is cut around the place where it begins to
// differ from the name that is most like it, so that two names do not look the same.
std::vector<std::string> shortened_names(const std::vector<std::string>& names, std::size_t width);

}  // namespace jouleprof::report
