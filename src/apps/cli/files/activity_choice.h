// The options of `report --by`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/activity/activity.h"

namespace jouleprof::cli {

struct ActivityChoice {
  std::string by;  // empty: not asked for
  std::string sort;
  std::optional<std::size_t> top;
  std::optional<std::size_t> depth;
  bool no_fold = false;
  bool fold = false;

  void declare(CLI::App& app);
  // `all`: rows are not limited where the user did not say how many. Errors: invalid_argument.
  Result<report::ActivityOptions> options(bool all) const;
};

}  // namespace jouleprof::cli
