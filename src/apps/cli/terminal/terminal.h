// What the terminal can show.
#pragma once

#include <unistd.h>

#include "report/render.h"

namespace jouleprof::cli {

// Width, height and colour for text that goes to `fd`: height and colour on a terminal only, no
// colour with NO_COLOR.
report::TextOptions text_options(int fd);

}  // namespace jouleprof::cli
