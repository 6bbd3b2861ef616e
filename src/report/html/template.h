// The page without its data. Built from web/ by `make page`, and compiled in.
#pragma once

#include <string_view>

namespace jouleprof::report {

extern const std::string_view kTemplate;

}  // namespace jouleprof::report
