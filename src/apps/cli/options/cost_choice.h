// The options of money and carbon.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/wall_log.h"
#include "report/costs/costs.h"

namespace jouleprof::cli {

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
  // Of one recording; absent where none was given. Errors: invalid_argument; as read_file's and
  // read_wall_log's.
  Result<std::optional<model::WallLog>> of_run() const;
  // Of a job, by machine. Errors: the same.
  Result<std::vector<std::pair<std::string, model::WallLog>>> of_job() const;
};

}  // namespace jouleprof::cli
