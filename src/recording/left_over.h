// Records that traced processes wrote after the tool was killed. Private to this folder.
#pragma once

#include <filesystem>

#include "model/recording.h"

namespace jouleprof::recording {

// Adds them to the recording read from `file`, which was cut off, with a warning. Does nothing
// while the tool still runs. Looks for the spool in the folder that the recording names, then next
// to `file` for the same name. Changes nothing in it.
void take_left_over(const std::filesystem::path& file, model::Recording& recording);

}  // namespace jouleprof::recording
