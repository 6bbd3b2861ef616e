// Runs a sweep.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "meters/control/setting_control.h"
#include "recording/sweep_file.h"
#include "session/sweep/planner.h"

namespace jouleprof::session {

// What one execution of the command gave.
struct Execution {
  int exit_status = 0;
  std::filesystem::path recording;  // its file; empty: none
  // Fills the measured members. Called after the settings were restored where the command failed.
  std::function<void(model::SweepRun&)> measure;
};

struct ExperimentOptions {
  // Runs the command once. Errors: why it could not be started or measured.
  std::function<Result<Execution>(const NextRun&)> execute;
  // Called after each run, and with nothing new while a board cools down.
  std::function<void(const SweepPlanner&, const std::string& remark)> on_progress;
  std::function<void(Duration)> sleep;
  Duration longest_cooling = std::chrono::minutes{2};
};

// Sets, runs, reads back, appends to `file`, until the planner has no next run. Settings are
// restored before it returns, at once where the command fails. Errors: of a change; of the file;
// unavailable where the command fails, a board's setting is changed by someone else in two runs in
// a row, or the guard dies. What was measured before is in the file.
Result<void> run_sweep(SweepPlanner& planner, meters::control::SettingControl& control,
                       recording::SweepFile& file, const ExperimentOptions& options);

}  // namespace jouleprof::session
