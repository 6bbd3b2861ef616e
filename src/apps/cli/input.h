// What several verbs do: read a recording, take a part of it, open an output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <string>

#include "analysis/run.h"
#include "base/result.h"
#include "report/format.h"

namespace jouleprof::cli {

// The options FILE, --run, --no-memory, --from and --to.
struct Input {
  std::string file;
  unsigned run = 0;        // of a sweep's file, from 1; 0: not given
  bool no_memory = false;  // without what earlier runs know of kernels
  std::string from;
  std::string to;

  void declare(CLI::App& app);
  Result<analysis::Part> part() const;
  // Errors: as read_recording's; invalid_argument for a sweep's file without a run, and the
  // reverse.
  Result<analysis::Run> open() const;
};

// Writes `run` in `format`, compressed where `path` ends in ".gz", and says on stderr what failed.
// Returns the exit status.
int write_run(const analysis::Run& run, const Input& input, const report::Format& format,
              const report::FormatOptions& options, const std::string& path, bool overwrite);

// Writes through `write` to a file, or to stdout when `path` is "" or "-". An existing file is
// replaced only with `overwrite`. Errors: invalid_argument when it exists, else as the system says.
Result<void> write_output(const std::string& path, bool overwrite,
                          const std::function<void(std::ostream&)>& write);

}  // namespace jouleprof::cli
