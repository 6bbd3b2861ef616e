// Two commands, run in pairs in an interleaved order.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/figures.h"
#include "base/result.h"

namespace jouleprof::cli {

struct PairPlan {
  std::vector<std::string> before;
  std::vector<std::string> after;
  unsigned pairs = 0;
  unsigned warm_ups = 1;  // runs of each command that are not counted
  std::vector<std::string> devices;
  analysis::FigureOptions figures;
  std::optional<double> replay_seconds{};  // as in session::TraceOptions
  std::filesystem::path keep;              // a folder for the recordings; empty: they are removed
};

struct PairRuns {
  std::vector<analysis::RunFigures> before;
  std::vector<analysis::RunFigures> after;
};

// Splits a command line at the first word "---". Errors: invalid_argument where a side is empty.
Result<std::pair<std::vector<std::string>, std::vector<std::string>>> split_commands(
    const std::vector<std::string>& words);

// Runs A B, B A, A B, ...: drift that is linear in time cancels. What the commands print goes to
// stderr. `status`: of the command that failed. Errors: as session::run's; unavailable where a
// command failed.
Result<PairRuns> run_pairs(const PairPlan& plan,
                           const std::function<void(const std::string&)>& on_progress, int& status);

}  // namespace jouleprof::cli
