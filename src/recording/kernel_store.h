// The power of kernels that runs of this user resolved: one SQLite file, for later runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/activity/activity.h"
#include "model/recording.h"

namespace jouleprof::recording {

// At most 20 000 rows are stored, and at most 20 of one signature on one board: the oldest are
// removed.
// Runs may read and write at the same time; a writer waits for another for at most 5 s.
//
// Errors of all: corrupt for a file that is damaged or no such store; unsupported for another
// version of it: the file stays as it is; unavailable where another program holds it; those of the
// file system. A missing file is an empty store.
class KernelStore {
 public:
  // `driver`: of the boards, as "550.54.15"; only its first number counts. Rows of other drivers
  // are neither returned nor replaced.
  KernelStore(std::filesystem::path path, const std::string& driver);

  // Rows of the recording's boards and of the signatures in its traces, oldest run first.
  Result<std::vector<model::RememberedKernel>> find(const model::Recording& recording) const;

  // Adds rows, and creates the file and its folder.
  Result<void> add(const std::vector<model::RememberedKernel>& kernels) const;

 private:
  std::filesystem::path path_;
  std::string driver_;
};

struct KernelStoreState {
  std::size_t rows = 0;
  std::size_t kernels = 0;  // different ones, by board
  std::size_t boards = 0;
  std::uint64_t bytes = 0;
  std::optional<RealTime> first;  // begin of the oldest run; absent: no rows
  std::optional<RealTime> last;
};

Result<KernelStoreState> kernel_store_state(const std::filesystem::path& path);

// Removes the file, damaged or not. Errors: of the file system.
Result<void> forget_kernels(const std::filesystem::path& path);

}  // namespace jouleprof::recording
