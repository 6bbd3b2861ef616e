// Recordings that are kept by a name and a commit, to compare later runs with.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

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
