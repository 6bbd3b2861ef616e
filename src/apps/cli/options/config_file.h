// The user's configuration file: `name = value` lines, # comments.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Errors: corrupt, with the line's number.
Result<Settings> parse_config(std::string_view text);

// Reads $JOULEPROF_CONFIG, else $XDG_CONFIG_HOME/jouleprof/config, else ~/.config/jouleprof/config.
// A default file that does not exist is empty settings, and so is, with a warning, one that cannot
// be read. One named by $JOULEPROF_CONFIG is then an error.
Result<Settings> read_config_file();

}  // namespace jouleprof::cli
