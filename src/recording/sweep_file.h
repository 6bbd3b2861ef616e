// The file of a sweep: its plan, the summary of each run, and each run's recording. docs/sweep.md
// describes it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/recording.h"
#include "model/sweep.h"

namespace jouleprof::recording {

struct SweepRecord {
  model::SweepPlan plan;
  std::vector<model::SweepRun> runs;  // in the order of their numbers
};

// Whether the file is a sweep's. False also for a file that cannot be read.
bool is_sweep_file(const std::filesystem::path& path);

// Errors: not_found, permission_denied, corrupt; unsupported for a newer version.
Result<SweepRecord> read_sweep(const std::filesystem::path& path);

// Writes the recording of one run into `to`. Errors: as read_sweep; not_found for a run without a
// recording; of writing.
Result<void> extract_run(const std::filesystem::path& path, unsigned number,
                         const std::filesystem::path& to);

// Thread safety: none.
class SweepFile {
 public:
  // Errors: invalid_argument where the file exists and may not be replaced; of the file system.
  static Result<SweepFile> create(const std::filesystem::path& path, const model::SweepPlan& plan,
                                  bool overwrite);
  // To append further runs. Errors: as read_sweep.
  static Result<SweepFile> open(const std::filesystem::path& path);
  SweepFile(SweepFile&&) noexcept;
  ~SweepFile();

  // One transaction, on disk when it returns. `recording`: the file of the run's recording, which
  // is copied; empty: there is none. Errors: of the file system.
  Result<void> append(const model::SweepRun& run, const std::filesystem::path& recording);

 private:
  struct Database;
  explicit SweepFile(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

// --- Plans and runs of a sweep as JSON; private to this folder ---

std::string plan_to_json(const model::SweepPlan& plan);
std::string run_to_json(const model::SweepRun& run);
// `file`: for messages. Errors: corrupt.
Result<model::SweepPlan> plan_from_json(const std::string& text, const std::string& file);
Result<model::SweepRun> run_from_json(const std::string& text, const std::string& file);

}  // namespace jouleprof::recording
