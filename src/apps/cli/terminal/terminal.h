// What the terminal can show.
#pragma once

#include <unistd.h>

#include "report/render.h"

namespace jouleprof::cli {

// Width and colour for text that goes to `fd`: colour on a terminal only, and not with NO_COLOR.
report::TextOptions text_options(int fd);

}  // namespace jouleprof::cli
