// The options of money and carbon.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
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

}  // namespace jouleprof::cli
