// What several verbs do: read a recording, take a part of it, write it in a format.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "analysis/run.h"
#include "apps/cli/terminal/output.h"
#include "base/result.h"
#include "report/format/format.h"

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

// Writes `run` in `format`, compressed where its name ends in ".gz", and says on stderr what
// failed. Returns the exit status.
int write_run(const analysis::Run& run, const Input& input, const report::Format& format,
              const report::FormatOptions& options, const Output& output);

}  // namespace jouleprof::cli
