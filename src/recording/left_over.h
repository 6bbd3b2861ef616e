// What traced processes told and nobody took, because the tool was killed. Private to this folder.
#pragma once

#include <filesystem>

#include "model/recording.h"

namespace jouleprof::recording {

// Adds it to the recording read from `file`, which was cut off, with a warning that says so. Does
// nothing while the tool still runs. The spool is looked for where the recording says, else beside
// `file` under the same name. Nothing in it is changed.
void take_left_over(const std::filesystem::path& file, model::Recording& recording);

}  // namespace jouleprof::recording
