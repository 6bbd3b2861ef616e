// A sweep: which run comes next, and the runs one after the other.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/sweep/recommend.h"
#include "base/result.h"
#include "meters/control/setting.h"
#include "model/sweep.h"
#include "recording/sweep_file.h"

namespace jouleprof::session {

// Which run of a sweep comes next.
struct NextRun {
  unsigned number = 1;
  unsigned block = 0;  // 0: warm-up
  double setting = 0;
};

// Randomised complete blocks: each block has every setting that is not yet dropped once, in an
// order that the seed and the block's number determine, the reference among them. After each block
// from the second on, settings are dropped that intervals rule out; before it, those that the work
// never reached. The sweep ends after `fewest_blocks` as soon as no setting can be better than the
// recommended one by more than the plan's tolerance, at 95 %.
//
// All decisions are functions of the plan and the runs: an interrupted sweep goes on where it was.
class SweepPlanner {
 public:
  explicit SweepPlanner(model::SweepPlan plan, std::vector<model::SweepRun> runs = {});

  // Nothing: the sweep has ended; why_ended() says why.
  std::optional<NextRun> next() const { return next_; }
  const std::string& why_ended() const { return why_ended_; }
  void add(model::SweepRun run);

  const model::SweepPlan& plan() const { return plan_; }
  const std::vector<model::SweepRun>& runs() const { return runs_; }
  // Settings that are no longer measured, with the reason.
  const std::map<double, std::string>& dropped() const { return dropped_; }
  // How many runs there will be at most.
  unsigned most_runs() const;
  // What is known so far; absent before the second block.
  const std::optional<analysis::Recommendation>& advice() const { return advice_; }
  const analysis::Sweep& sweep() const { return sweep_; }

 private:
  std::vector<double> order_of(unsigned block) const;
  void plan_next();
  void finish_block();
  void drop_unreached();
  void drop_ruled_out();
  bool is_out_of_time() const;
  bool is_decided() const;

  const model::SweepPlan plan_;
  std::vector<model::SweepRun> runs_;
  unsigned block_ = 0;  // the current one
  std::vector<double> pending_;
  std::map<double, std::string> dropped_;
  analysis::Sweep sweep_;
  std::optional<analysis::Recommendation> advice_;
  std::optional<NextRun> next_;
  std::string why_ended_;
};

// How a sweep of this plan is judged. The reference is the plan's, or the highest setting where no
// run of that one is ranked.
analysis::RecommendOptions recommend_options(const model::SweepPlan& plan,
                                             const analysis::Sweep& sweep);

// --- Runs a sweep ---

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
