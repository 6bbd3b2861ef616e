#include "session/sweep/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/process/last_resort.h"
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
    if (failed) restored = control_.restore();
    if (execution->measure) execution->measure(run);
    if (failed) {
      run.unranked = "the command " + failure_text(execution->exit_status);
    } else if (lost) {
      run.unranked = "the settings were restored during the run: their guard was killed";
    }
    judge_setting(planner_.plan(), run);
    run.wall_seconds = seconds(HostClock::now() - begin);
    if (auto kept = file_.append(run, execution->recording); !kept) return kept;
    // What the driver made of the setting is named with the run; here it is what happened since.
    const double set_to = run.requested.value_or(run.setting);
    const bool reverted =
        run.requested_after && !lost && !failed && std::abs(*run.requested_after - set_to) > 1;
    reverted_ = reverted ? reverted_ + 1 : 0;
    const bool unmeasured = !lost && !failed && !(run.seconds && run.joules);
    unmeasured_ = unmeasured ? unmeasured_ + 1 : 0;
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
                  fmt::format("{} at {:g}; the settings were restored. --resume goes on with this "
                              "run",
                              run.unranked, run.setting));
    }
    constexpr int kMostInARow = 2;
    if (unmeasured_ >= kMostInARow) {
      return fail(Errc::kUnavailable,
                  fmt::format("the work was not measured in two runs in a row: {}; the settings "
                              "were restored. Correct the cause, then measure anew with --force",
                              run.unranked));
    }
    if (reverted_ < kMostInARow) return {};
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
  int reverted_ = 0;    // runs in a row
  int unmeasured_ = 0;  // likewise
};

constexpr const char* kDecided = "the recommendation is decided";
constexpr unsigned kPlannerDraws = 1000;  // after each block

// std::shuffle may differ between libraries; the order of a seed must not.
void shuffle(std::vector<double>& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

}  // namespace

Result<void> run_sweep(SweepPlanner& planner, SettingControl& control, recording::SweepFile& file,
                       const ExperimentOptions& options) {
  auto outcome = Experiment(planner, control, file, options).run();
  auto restored = control.restore();
  if (restored) return outcome;
  if (outcome) return restored;
  return fail(outcome.error().code, outcome.error().message + ". " + restored.error().message);
}

analysis::RecommendOptions recommend_options(const model::SweepPlan& plan,
                                             const analysis::Sweep& sweep) {
  analysis::RecommendOptions options;
  options.objective =
      analysis::parse_objective(plan.objective).value_or(analysis::Objective::kEnergy);
  options.eta = plan.eta;
  options.max_slowdown = plan.max_slowdown;
  options.max_watts = plan.max_watts;
  const bool has_reference = std::ranges::any_of(
      sweep.points, [&](const auto& point) { return point.setting == plan.reference; });
  if (has_reference) options.reference = plan.reference;
  return options;
}

SweepPlanner::SweepPlanner(model::SweepPlan plan, std::vector<SweepRun> runs)
    : plan_(std::move(plan)) {
  pending_ = {plan_.reference};  // warm-up
  plan_next();
  for (auto& run : runs) add(std::move(run));
}

std::vector<double> SweepPlanner::order_of(unsigned block) const {
  std::vector<double> order;
  for (const double setting : plan_.settings) {
    if (!dropped_.contains(setting)) order.push_back(setting);
  }
  std::mt19937_64 random(plan_.seed * 1'000'003 + block);
  shuffle(order, random);
  return order;
}

void SweepPlanner::add(SweepRun run) {
  // A run that failed is run again.
  const auto at = std::ranges::find(pending_, run.setting);
  if (run.block == block_ && at != pending_.end() && run.exit_status.value_or(0) == 0) {
    pending_.erase(at);
  }
  runs_.push_back(std::move(run));
  if (pending_.empty()) finish_block();
  plan_next();
}

void SweepPlanner::finish_block() {
  if (block_ == 1) drop_unreached();
  if (block_ >= 2) drop_ruled_out();
  if (block_ >= plan_.fewest_blocks && is_decided()) {
    why_ended_ = kDecided;
  } else if (block_ >= plan_.most_blocks) {
    why_ended_ = fmt::format("{} blocks were run", block_);
  } else {
    pending_ = order_of(++block_);
  }
}

void SweepPlanner::plan_next() {
  next_.reset();
  if (pending_.empty()) return;
  if (is_out_of_time()) {
    why_ended_ = "the next run would exceed the time given";
    return;
  }
  next_ = NextRun{runs_.empty() ? 1 : runs_.back().number + 1, block_, pending_.front()};
}

bool SweepPlanner::is_out_of_time() const {
  if (!plan_.max_seconds || runs_.empty()) return false;
  double sum = 0;
  for (const auto& run : runs_) sum += run.wall_seconds;
  return sum + sum / static_cast<double>(runs_.size()) > *plan_.max_seconds;
}

void SweepPlanner::drop_unreached() {
  for (const auto& unranked : analysis::sweep_of(plan_, runs_).unranked) {
    if (unranked.never_reached) dropped_[unranked.setting] = unranked.reason;
  }
}

void SweepPlanner::drop_ruled_out() {
  advice_.reset();
  sweep_ = analysis::sweep_of(plan_, runs_);
  auto options = recommend_options(plan_, sweep_);
  options.draws = kPlannerDraws;
  auto advice = analysis::recommend(sweep_, options);
  if (!advice) return;
  for (const auto& rated : advice->points) {
    const double setting = rated.point->setting;
    if (setting == plan_.reference || !rated.ruled_out || dropped_.contains(setting)) continue;
    dropped_[setting] = rated.feasible ? "ruled out: not the best" : "ruled out: too slow";
  }
  advice_ = std::move(*advice);
}

bool SweepPlanner::is_decided() const {
  return advice_ && advice_->regret && *advice_->regret <= plan_.tolerance;
}

unsigned SweepPlanner::most_runs() const {
  if (!next_) return static_cast<unsigned>(runs_.size());
  const auto alive = static_cast<unsigned>(plan_.settings.size() - dropped_.size());
  const auto blocks = plan_.most_blocks - std::min(plan_.most_blocks, block_);
  return static_cast<unsigned>(runs_.size() + pending_.size()) + blocks * alive;
}

}  // namespace jouleprof::session
