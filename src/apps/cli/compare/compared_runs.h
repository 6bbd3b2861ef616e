// What is compared: two commands, run in pairs in an interleaved order, or recordings that are kept
// by a name and a commit.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  std::optional<Error> ended;  // why there are fewer pairs than planned
};

// Splits a command line at the first word "---". Errors: invalid_argument where a side is empty.
Result<std::pair<std::vector<std::string>, std::vector<std::string>>> split_commands(
    const std::vector<std::string>& words);

// Runs A B, B A, A B, ...: drift that is linear in time cancels. What the commands print goes to
// stderr. `status`: of the command that failed. Errors: as session::run's; unavailable where a
// command failed. After two pairs an error ends the runs, and is PairRuns::ended.
Result<PairRuns> run_pairs(const PairPlan& plan,
                           const std::function<void(const std::string&)>& on_progress, int& status);

class Baselines {
 public:
  explicit Baselines(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // In the user's data folder: $XDG_DATA_HOME/jouleprof/baselines, else below ~/.local/share.
  // Errors: not_found where neither variable is set.
  static Result<Baselines> of_user();

  // Copies recordings to those that are kept by this name and commit. Errors: invalid_argument for
  // a name that is no file name; of the file system.
  Result<void> save(std::string_view name, std::string_view commit,
                    const std::vector<std::filesystem::path>& recordings) const;

  struct Found {
    std::string commit;
    std::vector<std::filesystem::path> recordings;
  };
  // `name`: "NAME", for the commit that was saved last, or "NAME@COMMIT", of which the beginning is
  // enough. Errors: not_found; invalid_argument for a beginning that several commits have.
  Result<Found> find(std::string_view name) const;

 private:
  std::filesystem::path folder_;
};

// The commit that is checked out in the working directory; "none" outside of a Git repository.
std::string current_commit();

}  // namespace jouleprof::cli
