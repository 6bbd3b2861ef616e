// The options of compare that say what is written where.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace jouleprof::cli {

struct CompareOutputs {
  bool json = false;
  bool github = false;
  std::string markdown;
  std::string junit;
  std::string benchmark;
  std::size_t top = 20;

  void declare(CLI::App& app);
  // Existing files are replaced. Returns the exit status.
  int write(report::ComparisonReport report) const;
};

}  // namespace jouleprof::cli
