#include "session/sweep/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::session {
namespace {

using meters::control::ReadBack;
using meters::control::SettingControl;
using model::SweepRun;

std::optional<double> hottest(const std::vector<ReadBack>& boards) {
  std::optional<double> most;
  for (const auto& board : boards) {
    if (board.celsius) most = std::max(most.value_or(*board.celsius), *board.celsius);
  }
  return most;
}

// The value of the board that differs from the setting, where one does.
std::optional<double> worst(const std::vector<ReadBack>& boards, double setting,
                            std::optional<double> ReadBack::*value) {
  std::optional<double> found;
  for (const auto& board : boards) {
    if (!(board.*value)) continue;
    if (!found || std::abs(*(board.*value) - setting) > std::abs(*found - setting)) {
      found = board.*value;
    }
  }
  return found;
}

class Experiment {
 public:
  Experiment(SweepPlanner& planner, SettingControl& control, recording::SweepFile& file,
             const ExperimentOptions& options)
      : planner_(planner), control_(control), file_(file), options_(options) {}

  Result<void> run() {
    while (const auto next = planner_.next()) {
      if (auto done = run_once(*next); !done) return done;
    }
    return {};
  }

 private:
  Result<void> run_once(const NextRun& next) {
    const HostTime begin = HostClock::now();
    cool_down();
    SweepRun run;
    run.number = next.number;
    run.block = next.block;
    run.setting = next.setting;
    run.started_unix_ns = RealClock::now().time_since_epoch().count();
    const auto set = control_.apply(next.setting);
    if (!set) return tl::unexpected(set.error());
    run.requested = worst(*set, next.setting, &ReadBack::requested);
    run.enforced_watts = worst(*set, next.setting, &ReadBack::enforced_watts);
    run.start_celsius = hottest(*set);

    const auto execution = options_.execute(next);
    if (!execution) return tl::unexpected(execution.error());
    run.exit_status = execution->exit_status;
    const auto lost = control_.lost();
    const auto after = control_.read_back();
    run.requested_after = worst(after, next.setting, &ReadBack::requested);
    run.end_celsius = hottest(after);
    const bool failed = execution->exit_status != 0;
    Result<void> restored;
    if (failed) {
      restored = control_.restore();
      run.unranked = fmt::format("the command failed with status {}", execution->exit_status);
    } else if (lost) {
      run.unranked = "the settings were restored during the run: their guard was killed";
    }
    if (execution->measure) execution->measure(run);
    judge_setting(planner_.plan(), run);
    run.wall_seconds = seconds(HostClock::now() - begin);
    if (auto kept = file_.append(run, execution->recording); !kept) return kept;
    // What the driver made of the setting is named with the run; here it is what happened since.
    const double set_to = run.requested.value_or(run.setting);
    const bool reverted =
        run.requested_after && !lost && !failed && std::abs(*run.requested_after - set_to) > 1;
    reverted_ = reverted ? reverted_ + 1 : 0;
    planner_.add(run);
    if (options_.on_progress) options_.on_progress(planner_, "");
    return verdict(run, failed, restored, lost);
  }

  Result<void> verdict(const SweepRun& run, bool failed, const Result<void>& restored,
                       const std::optional<Error>& lost) const {
    if (!restored) return restored;
    if (lost) return tl::unexpected(*lost);
    if (failed) {
      return fail(Errc::kUnavailable,
                  fmt::format("the command failed with status {} at {:g}; the settings were "
                              "restored. --resume goes on with this run",
                              *run.exit_status, run.setting));
    }
    constexpr int kMostReverted = 2;
    if (reverted_ < kMostReverted) return {};
    return fail(Errc::kUnavailable,
                fmt::format("the setting was changed to {:g} during two runs in a row: another "
                            "program sets it, or the driver does; stop that program, then --resume",
                            *run.requested_after));
  }

  void cool_down() {
    const auto& most = planner_.plan().most_celsius;
    if (!most) return;
    constexpr Duration kStep = std::chrono::seconds{1};
    for (Duration waited{}; waited < options_.longest_cooling; waited += kStep) {
      const auto now = hottest(control_.read_back());
      if (!now || *now <= *most) return;
      if (options_.on_progress) {
        options_.on_progress(planner_,
                             fmt::format("cooling down: {:.0f} C, to {:.0f} C", *now, *most));
      }
      options_.sleep(kStep);
    }
  }

  SweepPlanner& planner_;
  SettingControl& control_;
  recording::SweepFile& file_;
  const ExperimentOptions& options_;
  int reverted_ = 0;
};

}  // namespace

Result<void> run_sweep(SweepPlanner& planner, SettingControl& control, recording::SweepFile& file,
                       const ExperimentOptions& options) {
  auto outcome = Experiment(planner, control, file, options).run();
  auto restored = control.restore();
  if (restored) return outcome;
  if (outcome) return restored;
  return fail(outcome.error().code, outcome.error().message + ". " + restored.error().message);
}

}  // namespace jouleprof::session
