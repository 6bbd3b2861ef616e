// The options of compare that say what is written where.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/results/comparison.h"

namespace jouleprof::cli {

struct CompareOutputs {
  bool json = false;
  bool github = false;
  std::string html;
  bool redact = false;  // of `html`
  std::string markdown;
  std::string junit;
  std::string benchmark;
  std::size_t top = 20;

  void declare(CLI::App& app);
  // Errors: invalid_argument where a file is one of `inputs` or named twice.
  Result<void> check(const std::vector<std::string>& inputs) const;
  // Existing files are replaced, but none of `inputs`. Returns the exit status.
  int write(report::ComparisonReport report, const std::vector<std::string>& inputs) const;
};

}  // namespace jouleprof::cli
