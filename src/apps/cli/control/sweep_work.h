// One run of a sweep's work, measured.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "model/sweep.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::cli {

struct SweepWorkDone {
  int exit_status = 0;
  session::WorkReport report;
  std::string failure;  // why the work cannot be measured; empty: it can
  std::string remark;   // on work that can
};

class SweepWork {
 public:
  // The recordings of runs are in a file next to that of the sweep, which goes with this object.
  explicit SweepWork(const std::string& sweep_file) : recording_(sweep_file + ".run") {}
  SweepWork(const SweepWork&) = delete;
  SweepWork& operator=(const SweepWork&) = delete;
  ~SweepWork() { remove_recording(); }

  // Errors: of opening meters and files; why the command cannot be started.
  Result<SweepWorkDone> run(const model::SweepPlan& plan);
  // Of the last run.
  const std::filesystem::path& recording() const { return recording_; }
  void remove_recording() const;

 private:
  std::filesystem::path recording_;
};

}  // namespace jouleprof::cli
