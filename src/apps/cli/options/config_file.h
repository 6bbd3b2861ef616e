// The user's configuration file: `name = value` lines, # comments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

struct Setting {
  std::string name;
  std::string value;
  std::string source;  // "line 3", and in which file where it was read from one
};
using Settings = std::vector<Setting>;

// Errors: corrupt, with the line's number.
Result<Settings> parse_config(std::string_view text);

// Reads $JOULEPROF_CONFIG, else $XDG_CONFIG_HOME/jouleprof/config, else ~/.config/jouleprof/config.
// A default file that does not exist is empty settings, and so is, with a warning, one that cannot
// be read. One named by $JOULEPROF_CONFIG is then an error.
Result<Settings> read_config_file();

}  // namespace jouleprof::cli
