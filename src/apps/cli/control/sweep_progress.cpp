#include "apps/cli/control/sweep_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "meters/control/knob.h"
#include "report/quantity.h"

namespace jouleprof::cli {
namespace {

using report::duration_text;
using report::energy_text;

constexpr const char* kRow = "{:>7} {:>5} {:>9} {:>9} {:>9} {:>7} {:>7}  {}\n";

std::string unit_of(const model::SweepPlan& plan) {
  const auto knob = meters::control::knob_of_label(plan.knob);
  return std::string(knob ? meters::control::unit_of(*knob) : "");
}

double mean_wall(const std::vector<model::SweepRun>& runs) {
  double sum = 0;
  for (const auto& run : runs) sum += run.wall_seconds;
  return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}

std::string left_text(const session::SweepPlanner& planner) {
  if (!planner.next()) return "";
  const auto& runs = planner.runs();
  const double each = mean_wall(runs);
  double left = each * static_cast<double>(planner.most_runs() - runs.size());
  if (const auto& most = planner.plan().max_seconds) {
    left = std::min(left, *most - each * static_cast<double>(runs.size()));
  }
  return fmt::format("at most {} left", duration_text(duration_of(std::max(0.0, left))));
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

std::string row_of(const model::SweepPlan& plan, const model::SweepRun& run,
                   const std::string& number_text, const std::string& block,
                   const std::string& usual_remark) {
  std::string remark = run.remark.empty() ? usual_remark : run.remark;
  if (!run.unranked.empty()) remark = "not ranked: " + run.unranked;
  return fmt::format(kRow, number_text, block, setting_text(plan, run.setting),
                     run.seconds ? duration_text(duration_of(*run.seconds)) : "-",
                     run.joules ? energy_text(Energy::joules(*run.joules)) : "-",
                     number(run.mean_watts),
                     run.sm_megahertz ? fmt::format("{:.0f}", *run.sm_megahertz) : "-", remark);
}

}  // namespace

std::string setting_text(const model::SweepPlan& plan, double setting) {
  return fmt::format("{:g} {}", setting, unit_of(plan));
}

std::string progress_head(const model::SweepPlan& plan) {
  return fmt::format(kRow, "run", "block", plan.knob == "power_limit_watts" ? "limit" : "clock",
                     "time", "energy", "mean W", "SM MHz", "");
}

std::string progress_row(const session::SweepPlanner& planner) {
  const auto& run = planner.runs().back();
  return row_of(planner.plan(), run, fmt::format("{}/{}", run.number, planner.most_runs()),
                run.is_warm_up() ? "warm" : fmt::format("{}", run.block), left_text(planner));
}

std::string observed_row(const model::SweepPlan& plan, const model::SweepRun& run) {
  return row_of(plan, run, fmt::format("{}", run.number), "-", "");
}

std::string plan_text(const session::SweepPlanner& planner, const model::SweepRun& trial,
                      bool may_set) {
  const auto& plan = planner.plan();
  std::vector<std::string> settings;
  for (const double setting : plan.settings) settings.push_back(fmt::format("{:g}", setting));
  const auto blocks = static_cast<double>(plan.settings.size());
  const double fewest = 1 + plan.fewest_blocks * blocks;
  const double most = 1 + plan.most_blocks * blocks;
  std::string text;
  const auto add = [&](const char* label, const std::string& value) {
    text += fmt::format("{:<10} {}\n", label, value);
  };
  add("settings", fmt::format("{} {}", fmt::join(settings, ", "), unit_of(plan)));
  add("reference", setting_text(plan, plan.reference));
  add("found", plan.found ? setting_text(plan, *plan.found) + "; restored at the end"
                          : "not reported by the driver, or the GPUs differ; restored at the end");
  add("runs", fmt::format("about {:.0f}, at most {:.0f}: a warm-up, then blocks of all settings in "
                          "random order, seed {}; settings that intervals rule out are dropped",
                          fewest, most, plan.seed));
  add("one run", fmt::format("{} and {} at the present setting",
                             duration_text(duration_of(trial.wall_seconds)),
                             trial.total_joules ? energy_text(Energy::joules(*trial.total_joules))
                                                : "an unknown energy"));
  const auto needs = [&](double runs) {
    return fmt::format("{} and {}", duration_text(duration_of(runs * trial.wall_seconds)),
                       trial.total_joules ? energy_text(Energy::joules(runs * *trial.total_joules))
                                          : "an unknown energy");
  };
  add("needs",
      fmt::format("about {}, at most {}{}", needs(fewest), needs(most),
                  plan.max_seconds ? fmt::format("; ends before {}",
                                                 duration_text(duration_of(*plan.max_seconds)))
                                   : ""));
  add("privilege", may_set ? "this process may change settings"
                           : "MISSING: run it as root; in a container with --cap-add SYS_ADMIN");
  if (!trial.unranked.empty()) add("warning", "the trial would not be ranked: " + trial.unranked);
  add("changed", "nothing: this was a dry run");
  return text;
}

}  // namespace jouleprof::cli
