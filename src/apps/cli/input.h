// What several verbs do: read a recording, take a part of it, open an output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <string>

#include "analysis/analyse.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::cli {

// The options FILE, --from and --to.
struct Input {
  std::string file;
  std::string from;
  std::string to;

  void declare(CLI::App& app);
  Result<analysis::Options> options() const;
};

// The recording and its analysis, with errors that name the file.
struct Analysed {
  model::Recording recording;
  model::Profile profile;
};
Result<Analysed> read_and_analyse(const Input& input);

// Writes through `write` to a file, or to stdout when `path` is "" or "-". An existing file is
// replaced only with `overwrite`. Errors: invalid_argument when it exists, else as the system says.
Result<void> write_output(const std::string& path, bool overwrite,
                          const std::function<void(std::ostream&)>& write);

}  // namespace jouleprof::cli
