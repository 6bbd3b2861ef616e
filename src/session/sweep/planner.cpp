#include "session/sweep/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace jouleprof::session {

using model::SweepRun;

namespace {

constexpr const char* kDecided = "the recommendation is decided";

// std::shuffle may differ between libraries; the order of a seed must not.
void shuffle(std::vector<double>& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

}  // namespace

analysis::RecommendOptions recommend_options(const model::SweepPlan& plan,
                                             const analysis::Sweep& sweep) {
  analysis::RecommendOptions options;
  options.objective =
      analysis::parse_objective(plan.objective).value_or(analysis::Objective::kEnergy);
  options.eta = plan.eta;
  options.max_slowdown = plan.max_slowdown;
  options.max_watts = plan.max_watts;
  const bool has_reference =
      std::any_of(sweep.points.begin(), sweep.points.end(),
                  [&](const auto& point) { return point.setting == plan.reference; });
  if (has_reference) options.reference = plan.reference;
  options.draws = 1000;
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
  const auto at = std::find(pending_.begin(), pending_.end(), run.setting);
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
  auto advice = analysis::recommend(sweep_, recommend_options(plan_, sweep_));
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
