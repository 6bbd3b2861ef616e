// `doctor --capture`: what a machine's sensors show, as a tree of files that can be given away.
#pragma once

#include <filesystem>

#include "base/clock.h"
#include "base/result.h"
#include "meters/all/open_meters.h"

namespace jouleprof::cli {

// Writes into `folder`, which must not exist or be empty:
// - sys/ and proc/: the files that meters read, laid out so that JOULEPROF_ROOT can name the
// folder.
//   Only files of a fixed list are copied: none has a serial number, a UUID, or the name of a host,
//   a user or a program;
// - readings.csv: what each sensor said for `time`, and AMD's gpu_metrics once a second;
// - sensors.txt: domains, sensors and what is missing.
// Errors: invalid_argument for a folder with something in it; of the file system.
Result<void> capture(meters::MeterSet& meters, const std::filesystem::path& folder, Duration time);

}  // namespace jouleprof::cli
