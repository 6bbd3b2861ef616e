// Options that several verbs have: which recording is read and what part of it, what energy costs,
// and meters at the wall.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "apps/cli/terminal/output.h"
#include "base/result.h"
#include "model/wall_log.h"
#include "report/costs/costs.h"
#include "report/format/format.h"

namespace jouleprof::cli {

// The options FILE, --run, --no-memory, --from and --to.
struct Input {
  std::string file;
  unsigned run = 0;        // of a sweep's file, from 1; 0: not given
  bool no_memory = false;  // without what earlier runs know of kernels
  analysis::Part part;

  void declare(CLI::App& app);
  // Errors: as read_recording's; invalid_argument for a sweep's file without a run, and the
  // reverse.
  Result<analysis::Run> open() const;
};

// Writes `run` in `format`, compressed where its name ends in ".gz", and says on stderr what
// failed. Returns the exit status.
int write_run(const analysis::Run& run, const Input& input, const report::Format& format,
              const report::FormatOptions& options, const Output& output);

// The options of money and carbon.
struct CostChoice {
  std::string price;
  std::string carbon;
  std::string pue;

  void declare(CLI::App& app);
  // Errors: invalid_argument; for a file as read_file's and parse_carbon_series's.
  Result<report::CostFactors> factors() const;
};

// The options of wall meters.
struct WallChoice {
  std::vector<std::string> files;  // "FILE", or of a job "MACHINE=FILE"
  std::string column;

  void declare(CLI::App& app);
  // The log of one recording; absent where none was given. Errors: invalid_argument; as read_file's
  // and read_wall_log's.
  Result<std::optional<model::WallLog>> of_run() const;
  // The logs of a job, by machine. Errors: the same.
  Result<std::vector<std::pair<std::string, model::WallLog>>> of_job() const;
};

}  // namespace jouleprof::cli
