// Collects what the command's processes record of their kernels and layers.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/spool/spool_reader.h"
#include "session/run/session.h"
#include "session/sampling/recorder.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::session {

// The variables that a traced process finds.
inline constexpr const char* kTraceVariable = "JOULEPROF_TRACE";    // the spool's folder
inline constexpr const char* kReplayVariable = "JOULEPROF_REPLAY";  // seconds for each layer

// A spool's folder and what was read from it. Thread safety: none.
class TraceWatch {
 public:
  // Makes a folder that only this user can open, or takes the one that there is. Errors:
  // not_found (a folder that should be there), unavailable.
  static Result<std::unique_ptr<TraceWatch>> create(const TraceOptions& options);
  ~TraceWatch();  // removes a folder of its own that no process used
  TraceWatch(const TraceWatch&) = delete;
  TraceWatch& operator=(const TraceWatch&) = delete;

  // What the command's environment has to say, each "NAME=value". Another tool's
  // CUDA_INJECTION64_PATH is left alone, with a warning; of ROCm's tools ours is one more. The
  // options' remark is one more warning.
  std::vector<std::string> variables(const Environment& environment,
                                     std::vector<std::string>& warnings);

  // Removes what was taken, where the folder is its own: once that is recorded for good.
  void remove_taken();

  // Takes what there is now.
  void take(std::vector<Batch::TracePart>& parts, std::vector<std::string>& warnings);

  // Takes what is left, once no more is expected: where the folder is its own, waits up to
  // `patience` for processes that still run and have not said that they end. Says also why there is
  // nothing, where there is nothing.
  void take_rest(std::vector<Batch::TracePart>& parts, std::vector<std::string>& warnings,
                 Duration patience);

  // Removes its own folder where all that was in it was `recorded`; else says where it is.
  std::optional<std::string> close(bool recorded);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  class Collector;

  TraceWatch(const TraceOptions& options, std::filesystem::path folder, bool own);
  void set_rocprofiler(const Environment& environment, std::vector<std::string>& all,
                       std::vector<std::string>& warnings);
  void explain(std::vector<std::string>& warnings) const;

  TraceOptions options_;
  std::filesystem::path folder_;
  bool own_ = false;
  spool::FolderLock lock_;
  bool injected_ = true;  // false: another tool's library is in the way
  bool rocm_ = false;     // ROCm's runtimes load the library, too
  spool::SpoolReader reader_;
  std::unique_ptr<Collector> collector_;
};

}  // namespace jouleprof::session
