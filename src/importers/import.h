// Reads other tools' files into a recording.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"
#include "model/recording.h"

namespace jouleprof::importers {

struct Format {
  std::string_view name;         // as given to --format
  std::string_view description;  // one line for --help
};

// All formats, in the order in which they are tried.
std::span<const Format> formats();

struct ImportOptions {
  std::string format;  // one of formats(); empty: recognise it from the content
  // The time between two rows of a log without time stamps (dmon); absent means one second.
  std::optional<Duration> interval;
};

// Reads the files as one recording. The content decides the format, never the file's name.
//
// `run.source` is "import:FORMAT"; `run.tool_version` is left to the caller. Host time begins at
// zero; clock points tie it to the wall clock where the files do, and a recording without any has
// no known wall time. A pause in which the other tool was not recording is cut out of host time, so
// that no energy is counted for it: each piece has its own clock points, and a warning gives the
// time that was cut. A value that the other tool marks as missing is absent, with a
// ReadFailure where the sensor has other values.
//
// Errors: not_found, permission_denied for a file; invalid_argument when no format fits, an unknown
// one is named, the files are of several formats, or too many for their format; corrupt, with
// file and line, for bad content; unavailable when the files hold no energy and too few power
// readings (less than two) to have one.
Result<model::Recording> import_files(const std::vector<std::filesystem::path>& files,
                                      const ImportOptions& options = {});

}  // namespace jouleprof::importers
