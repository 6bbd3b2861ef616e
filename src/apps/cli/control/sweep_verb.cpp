#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "analysis/run.h"
#include "apps/cli/control/settings.h"
#include "apps/cli/control/sweep_choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/process/last_resort.h"
#include "base/say.h"
#include "meters/control/setting.h"
#include "model/sweep.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/results/recommendation.h"
#include "session/run/signals.h"
#include "session/sweep/experiment.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::cli {
namespace {

using report::duration_text;
using report::energy_text;

constexpr const char* kRow = "{:>7} {:>5} {:>9} {:>9} {:>9} {:>7} {:>7}  {}\n";

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
  return fmt::format(kRow, number_text, block, report::setting_text(plan.knob, run.setting),
                     run.seconds ? duration_text(duration_of(*run.seconds)) : "-",
                     run.joules ? energy_text(Energy::joules(*run.joules)) : "-",
                     number(run.mean_watts),
                     run.sm_megahertz ? fmt::format("{:.0f}", *run.sm_megahertz) : "-", remark);
}

// The head of the table of runs.
std::string progress_head(const model::SweepPlan& plan) {
  return fmt::format(kRow, "run", "block", plan.knob == "power_limit_watts" ? "limit" : "clock",
                     "time", "energy", "mean W", "SM MHz", "");
}

// The row of the planner's newest run, with the time left.
std::string progress_row(const session::SweepPlanner& planner) {
  const auto& run = planner.runs().back();
  return row_of(planner.plan(), run, fmt::format("{}/{}", run.number, planner.most_runs()),
                run.is_warm_up() ? "warm" : fmt::format("{}", run.block), left_text(planner));
}

// The row of a run that was only observed.
std::string observed_row(const model::SweepPlan& plan, const model::SweepRun& run) {
  return row_of(plan, run, fmt::format("{}", run.number), "-", "");
}

// What a sweep will do, and what it needs. `trial`: one run at the present setting.
std::string plan_text(const session::SweepPlanner& planner, const model::SweepRun& trial,
                      bool may_set) {
  const auto& plan = planner.plan();
  std::vector<std::string> settings;
  for (const double setting : plan.settings) {
    const bool is_last = &setting == &plan.settings.back();
    settings.push_back(is_last ? report::setting_text(plan.knob, setting)
                               : fmt::format("{:g}", setting));
  }
  const auto blocks = static_cast<double>(plan.settings.size());
  const double fewest = 1 + plan.fewest_blocks * blocks;
  const double most = 1 + plan.most_blocks * blocks;
  std::string text;
  const auto add = [&](const char* label, const std::string& value) {
    text += fmt::format("{:<10} {}\n", label, value);
  };
  add("settings", fmt::format("{}", fmt::join(settings, ", ")));
  add("reference", report::setting_text(plan.knob, plan.reference));
  add("found", plan.found ? report::setting_text(plan.knob, *plan.found) + "; restored at the end"
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

class SweepVerb : public Verb {
 public:
  std::string_view name() const override { return "sweep"; }
  bool takes_command() const override { return true; }

  void declare(CLI::App& app) override {
    choices_.declare(app);
    add(app, "--devices", devices_)->delimiter(',');
    add(app, "--dry-run", dry_run_)->excludes("--observe");
    // What the plan in the file says.
    const auto planned = app.get_options([](const CLI::Option* o) {
      return !o->check_name("--observe") && !o->check_name("--help");
    });
    auto* again = add(app, "--resume", resume_);
    for (auto* option : planned) again->excludes(option);
    add(app, "--shared", shared_);
    add(app, "--output", output_);
    add(app, "--force", force_);
    add(app, "--quiet", quiet_);
  }

  int run(const std::vector<std::string>& command) override {
    if (command.empty() == choices_.bench.empty() && !resume_) {
      return complain_of_usage(
          "say what to measure: jouleprof sweep [options] -- COMMAND, or a model with "
          "--bench\nTry 'jouleprof sweep --help'.");
    }
    if (output_.empty()) output_ = "sweep.jprof";
    // --force replaces a sweep, not what the command reads.
    if (auto possible = check_output({output_, true, command}); !possible) {
      return complain(possible.error(), kUsageError);
    }
    if (choices_.observe) return observe(command);
    if (resume_) return resume(command);
    const auto knob = choices_.knob();
    if (!knob) return complain(knob.error(), kUsageError);
    if (dry_run_) return dry_run(*knob, command);
    if (*knob == meters::control::Knob::kMemoryClock) warn_of_memory_clock();
    const auto devices = devices_to_set(devices_, choices_.bench_gpu());
    if (!devices) return complain(devices.error(), status_of_setting(devices.error()));
    auto held = hold_boards(*knob, *devices, shared_);
    if (!held) return complain(held.error(), status_of_setting(held.error()));
    auto plan = choices_.plan((*held)->state(), command);
    if (!plan) return complain(plan.error(), kUsageError);
    auto file = create_file(*plan);
    if (!file) return complain(file.error(), status_of_file(file.error()));
    return sweep(session::SweepPlanner(std::move(*plan)), **held, *file);
  }

 private:
  int resume(const std::vector<std::string>& command) {
    auto record = recording::read_sweep(output_);
    if (!record) return complain(record.error(), status_of_input(record.error()));
    if (!command.empty() && command != record->plan.command) {
      return complain_of_usage(
          fmt::format("{} is a sweep of another command; leave the command out to go "
                      "on with it",
                      output_));
    }
    if (record->plan.observe) {
      return complain_of_usage(
          fmt::format("{} has runs that were only observed; add one with --observe "
                      "--resume",
                      output_));
    }
    const auto knob = meters::control::knob_of_label(record->plan.knob);
    if (!knob) return complain({Errc::kCorrupt, output_ + " has an unknown knob"}, kBadContent);
    auto held = hold_boards(*knob, record->plan.devices, shared_);
    if (!held) return complain(held.error(), status_of_setting(held.error()));
    const auto& range = (*held)->range();
    for (const double setting : record->plan.settings) {
      if (range.nearest(setting) == setting) continue;
      return complain(
          {Errc::kInvalidArgument,
           fmt::format("{} has runs to do at {:g} {}, and the GPU allows {:g} to {:g} "
                       "now: allow it again, or sweep into another file",
                       output_, setting, meters::control::unit_of(*knob), range.least, range.most)},
          kNotStarted);
    }
    auto file = recording::SweepFile::open(output_);
    if (!file) return complain(file.error(), status_of_file(file.error()));
    return sweep(session::SweepPlanner(std::move(record->plan), std::move(record->runs)), **held,
                 *file);
  }

  // Whole when a signal ends the tool, so that --resume goes on with it.
  Result<recording::SweepFile> create_file(const model::SweepPlan& plan) const {
    const session::SignalsLater until_written;
    return recording::SweepFile::create(output_, plan, force_);
  }

  static void warn_of_memory_clock() {
    say("warning    a locked memory clock slows whatever uses memory, on some boards to less "
        "than half; some drivers accept it without effect, which is named after each run\n");
  }

  static int status_of_file(const Error& error) {
    return error.code == Errc::kInvalidArgument ? kUsageError : kCannotWrite;
  }

  // The boards that a sweep would set; sets nothing.
  Result<meters::control::BoardState> looked_at(meters::control::Knob knob) const {
    const auto devices = devices_to_set(devices_, choices_.bench_gpu());
    if (!devices) return forward_error(devices);
    return look_at_boards(knob, *devices);
  }

  // One run at the present setting.
  int dry_run(meters::control::Knob knob, const std::vector<std::string>& command) {
    const auto boards = looked_at(knob);
    if (!boards) return complain(boards.error(), status_of_setting(boards.error()));
    auto plan = choices_.plan(*boards, command);
    if (!plan) return complain(plan.error(), kUsageError);
    const session::SweepPlanner planner(std::move(*plan));
    const HostTime begin = HostClock::now();
    SweepWork work(output_);
    state_limit(planner.plan(), planner.plan().found);
    const auto execution = execute(work, planner.plan());
    if (!execution) return complain(execution.error(), kNotStarted);
    model::SweepRun trial;
    execution->measure(trial);
    trial.wall_seconds = seconds(HostClock::now() - begin);
    if (execution->exit_status != 0) {
      return complain({Errc::kUnavailable, "the command " + failure_text(execution->exit_status)},
                      execution->exit_status);
    }
    const auto shown = write_output(Output{}, plan_text(planner, trial, boards->may_set));
    return shown ? kDone : complain(shown.error(), kCannotWrite);
  }

  int sweep(session::SweepPlanner planner, meters::control::HeldBoards& held,
            recording::SweepFile& file) {
    if (!quiet_ && planner.next()) say("{}", progress_head(planner.plan()));
    SweepWork work(output_);
    session::ExperimentOptions options;
    options.execute = [&](const session::NextRun& next) {
      state_limit(planner.plan(), next.setting);
      return execute(work, planner.plan());
    };
    options.sleep = [](Duration d) { std::this_thread::sleep_for(d); };
    options.on_progress = [&](const session::SweepPlanner& now, const std::string& remark) {
      work.remove_recording();
      if (quiet_) return;
      say("{}", remark.empty() ? progress_row(now) : remark + "\n");
    };
    const auto done = session::run_sweep(planner, held, file, options);
    for (const auto& warning : held.warnings()) say("warning    {}\n", warning);
    if (!done) return complain(done.error(), status_of_run(planner, done.error()));
    return conclude(planner.plan(), planner.runs(),
                    planner.why_ended() + "; the settings were restored");
  }

  // Of the command, where it failed.
  static int status_of_run(const session::SweepPlanner& planner, const Error& error) {
    if (!planner.runs().empty()) {
      const int status = planner.runs().back().exit_status.value_or(0);
      if (status != 0) return status;
    }
    return error.code == Errc::kPermissionDenied ? kNotPermitted : kNothingToMeasure;
  }

  // The workloads of gpu-tune read the limit that they run at from their environment. No thread of
  // the tool reads it between two runs. Absent: the boards have different ones.
  static void state_limit(const model::SweepPlan& plan, std::optional<double> setting) {
    if (plan.knob != "power_limit_watts") return;
    if (setting) {
      ::setenv("MAX_WATT", fmt::format("{:g}", *setting).c_str(), 1);
    } else {
      ::unsetenv("MAX_WATT");  // inherited
    }
  }

  // One run, as the experiment and the dry run take it.
  Result<session::Execution> execute(SweepWork& work, const model::SweepPlan& plan) {
    auto done = work.run(plan);
    if (!done) return forward_error(done);
    session::Execution execution;
    execution.exit_status = done->exit_status;
    execution.recording = work.recording();
    execution.measure = [&work, plan, done = std::move(*done)](model::SweepRun& run) {
      auto recorded = recording::read_recording(work.recording());
      run.remark = done.remark;
      run.unranked = recorded ? done.failure : recorded.error().message;
      if (!run.unranked.empty()) return;
      session::measure_run(analysis::Run(std::move(*recorded)), plan, done.report, run);
    };
    return execution;
  }

  // ---- without a change

  int observe(const std::vector<std::string>& command) {
    const auto power = meters::control::Knob::kPowerLimit;
    const auto knob = choices_.knob();
    if (!knob || *knob != power) {
      return complain_of_usage(
          "--observe groups runs by the power limit alone: drivers do not report a "
          "locked clock. Leave --knob out");
    }
    const auto boards = looked_at(power);
    if (!boards) return complain(boards.error(), status_of_setting(boards.error()));
    recording::SweepRecord record;
    if (resume_) {
      auto found = recording::read_sweep(output_);
      if (!found) return complain(found.error(), status_of_input(found.error()));
      record = std::move(*found);
      if (!record.plan.observe || (!command.empty() && command != record.plan.command)) {
        return complain(other_sweep(), kUsageError);
      }
    } else {
      auto plan = choices_.observed_plan(boards->uuids, command);
      if (!plan) return complain(plan.error(), kUsageError);
      record.plan = std::move(*plan);
      if (std::error_code err; !force_ && std::filesystem::exists(output_, err)) {
        return complain_of_usage(
            fmt::format("{} exists; add a run to it with --observe --resume, choose "
                        "another name or use --force",
                        output_));
      }
    }
    state_limit(record.plan, boards->found);
    return observe(std::move(record));
  }

  // Measures the work once and adds its runs to the record and the file.
  int observe(recording::SweepRecord record) {
    SweepWork work(output_);
    const auto done = work.run(record.plan);
    if (!done) return complain(done.error(), kNotStarted);
    if (done->exit_status != 0) {
      return complain({Errc::kUnavailable, fmt::format("the command {}; nothing was kept",
                                                       failure_text(done->exit_status))},
                      done->exit_status);
    }
    auto recorded = recording::read_recording(work.recording());
    if (!recorded) return complain(recorded.error(), kInternalError);
    if (!done->failure.empty()) {
      return complain({Errc::kUnavailable, done->failure}, kNothingToMeasure);
    }
    const unsigned first = record.runs.empty() ? 1 : record.runs.back().number + 1;
    const auto runs = session::observe_runs(analysis::Run(std::move(*recorded)), record.plan,
                                            done->report, first);
    if (!runs) return complain(runs.error(), kNothingToMeasure);
    auto file = resume_ ? recording::SweepFile::open(output_)
                        : recording::SweepFile::create(output_, record.plan, force_);
    if (!file) return complain(file.error(), status_of_file(file.error()));
    if (!quiet_) say("{}", progress_head(record.plan));
    for (auto run : *runs) {
      run.remark = done->remark;
      // All of them have one recording.
      const auto kept = file->append(run, run.number == first ? work.recording() : "");
      if (!kept) return complain(kept.error(), kCannotWrite);
      if (!quiet_) say("{}", observed_row(record.plan, run));
      record.runs.push_back(run);
    }
    const auto found = analysis::sweep_of(record.plan, record.runs);
    if (found.points.size() < 2) {
      say("\njouleprof: {} has one power limit that can be ranked; next, at another limit: "
          "jouleprof sweep --observe --resume -o {}\n",
          output_, report::shell_word(output_));
      return kDone;
    }
    return conclude(record.plan, record.runs,
                    "nothing was set; the order of the limits was not random, so that drift counts "
                    "as their effect");
  }

  Error other_sweep() const {
    return {Errc::kInvalidArgument,
            fmt::format("{} is a sweep of another command, or one that changes settings; choose "
                        "another file with -o",
                        output_)};
  }

  int conclude(const model::SweepPlan& plan, const std::vector<model::SweepRun>& runs,
               const std::string& ended) const {
    std::vector<report::AdvisedSweep> sweeps;
    sweeps.push_back({analysis::sweep_of(plan, runs), fail(Errc::kInternal, "")});
    auto& [sweep, advice] = sweeps.front();
    report::RecommendationOptions options;
    options.choice = session::recommend_options(plan, sweep);
    options.sweep_file = output_;
    options.devices = smi_devices(output_, plan);
    advice = analysis::recommend(sweep, options.choice);
    if (!quiet_) {
      say("\n{}{:<10} {}\n{:<10} jouleprof recommend {}\n",
          report::recommendation_to_text(sweeps, options, text_options(STDERR_FILENO)),
          plan.observe ? "observed" : "ended", ended, "next", report::shell_word(output_));
    }
    return advice ? kDone : complain(advice.error(), kBadContent);
  }

  SweepChoices choices_;
  std::vector<std::string> devices_;
  bool shared_ = false;
  bool dry_run_ = false;
  bool resume_ = false;
  std::string output_;
  bool force_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_sweep() { return std::make_unique<SweepVerb>(); }

}  // namespace jouleprof::cli
