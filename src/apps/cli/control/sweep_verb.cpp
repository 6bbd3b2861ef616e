#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <thread>

#include "analysis/run.h"
#include "apps/cli/control/settings.h"
#include "apps/cli/control/sweep_choices.h"
#include "apps/cli/control/sweep_progress.h"
#include "apps/cli/exit_status.h"
#include "apps/cli/measuring.h"
#include "apps/cli/status_bar.h"
#include "apps/cli/terminal.h"
#include "apps/cli/verb.h"
#include "meters/all/open_meters.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/recommendation.h"
#include "report/render.h"
#include "session/run/session.h"
#include "session/sweep/experiment.h"
#include "session/sweep/output_tap.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kSettle = std::chrono::milliseconds{500};

class SweepVerb : public Verb {
 public:
  std::string_view name() const override { return "sweep"; }

  void declare(CLI::App& app) override {
    choices_.declare(app);
    app.add_option("--devices", devices_, "")->delimiter(',')->envname("JOULEPROF_DEVICES");
    app.add_flag("--shared", shared_, "");
    auto* dry = app.add_flag("--dry-run", dry_run_, "");
    app.add_flag("--resume", resume_, "")->excludes(dry);
    app.add_option("-o,--output", output_, "");
    app.add_flag("-f,--force", force_, "");
    app.add_flag("-q,--quiet", quiet_, "");
  }

  int run(const std::vector<std::string>& command) override {
    if (command.empty() == choices_.bench.empty() && !resume_) {
      return complain({Errc::kInvalidArgument,
                       "say what to measure: jouleprof sweep [options] -- COMMAND, or a model with "
                       "--bench\nTry 'jouleprof sweep --help'."},
                      kUsageError);
    }
    if (output_.empty()) output_ = "sweep.jprof";
    if (resume_) return resume(command);
    const auto knob = choices_.knob();
    if (!knob) return complain(knob.error(), kUsageError);
    if (dry_run_) return dry_run(*knob, command);
    auto held = hold_boards(*knob, devices_, shared_);
    if (!held) return complain(held.error(), status_of_setting(held.error()));
    auto plan = choices_.plan((*held)->state(), command);
    if (!plan) return complain(plan.error(), kUsageError);
    auto file = recording::SweepFile::create(output_, *plan, force_);
    if (!file) return complain(file.error(), status_of_file(file.error()));
    return sweep(session::SweepPlanner(std::move(*plan)), **held, *file);
  }

 private:
  int resume(const std::vector<std::string>& command) {
    auto record = recording::read_sweep(output_);
    if (!record) return complain(record.error(), status_of_input(record.error()));
    if (!command.empty() && command != record->plan.command) {
      return complain({Errc::kInvalidArgument,
                       fmt::format("{} is a sweep of another command; leave the command out to go "
                                   "on with it",
                                   output_)},
                      kUsageError);
    }
    const auto knob = meters::control::knob_of_label(record->plan.knob);
    if (!knob) return complain({Errc::kCorrupt, output_ + " has an unknown knob"}, kBadContent);
    auto held = hold_boards(*knob, record->plan.devices, shared_);
    if (!held) return complain(held.error(), status_of_setting(held.error()));
    auto file = recording::SweepFile::open(output_);
    if (!file) return complain(file.error(), status_of_file(file.error()));
    return sweep(session::SweepPlanner(std::move(record->plan), std::move(record->runs)), **held,
                 *file);
  }

  static int status_of_file(const Error& error) {
    return error.code == Errc::kInvalidArgument ? kUsageError : kCannotWrite;
  }

  // One run at the present setting.
  int dry_run(meters::control::Knob knob, const std::vector<std::string>& command) {
    const auto boards = look_at_boards(knob, devices_);
    if (!boards) return complain(boards.error(), status_of_setting(boards.error()));
    auto plan = choices_.plan(*boards, command);
    if (!plan) return complain(plan.error(), kUsageError);
    const session::SweepPlanner planner(std::move(*plan));
    const HostTime begin = HostClock::now();
    const auto execution = execute(planner.plan());
    if (!execution) return complain(execution.error(), kNotStarted);
    model::SweepRun trial;
    execution->measure(trial);
    trial.wall_seconds = seconds(HostClock::now() - begin);
    remove_recording();
    if (execution->exit_status != 0) {
      return complain({Errc::kUnavailable,
                       fmt::format("the command failed with status {}", execution->exit_status)},
                      execution->exit_status);
    }
    fmt::print("{}", plan_text(planner, trial, boards->may_set));
    return kDone;
  }

  int sweep(session::SweepPlanner planner, meters::control::HeldBoards& held,
            recording::SweepFile& file) {
    if (!quiet_ && planner.next()) fmt::print(stderr, "{}", progress_head(planner.plan()));
    session::ExperimentOptions options;
    options.execute = [&](const session::NextRun&) { return execute(planner.plan()); };
    options.sleep = [](Duration d) { std::this_thread::sleep_for(d); };
    options.on_progress = [&](const session::SweepPlanner& now, const std::string& remark) {
      remove_recording();
      if (quiet_) return;
      fmt::print(stderr, "{}", remark.empty() ? progress_row(now) : remark + "\n");
    };
    const auto done = session::run_sweep(planner, held, file, options);
    remove_recording();
    for (const auto& warning : held.warnings()) fmt::print(stderr, "warning    {}\n", warning);
    if (!done) return complain(done.error(), status_of_run(planner, done.error()));
    conclude(planner);
    return kDone;
  }

  // Of the command, where it failed.
  static int status_of_run(const session::SweepPlanner& planner, const Error& error) {
    if (!planner.runs().empty()) {
      const int status = planner.runs().back().exit_status.value_or(0);
      if (status != 0) return status;
    }
    return error.code == Errc::kPermissionDenied ? kNotPermitted : kNothingToMeasure;
  }

  fs::path run_file() const { return output_ + ".run"; }
  void remove_recording() const {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"}) {
      fs::remove(run_file().string() + suffix, ignored);
    }
  }

  Result<session::Execution> execute(const model::SweepPlan& plan) {
    meters::MeterOptions meter_options;
    meter_options.demand.shortest_window = std::chrono::seconds{1};
    // Clocks show a steady state.
    if (!plan.bench.empty()) meter_options.demand.state_period = std::chrono::milliseconds{250};
    auto meters = meters::open_meters(meter_options);
    if (!meters) return forward_error(meters);
    remove_recording();
    auto destination = Destination::file(run_file(), true);
    if (!destination) return forward_error(destination);
    session::SessionOptions options;
    options.command = plan.command;
    const auto bench = std::make_shared<BenchResult>();
    if (!plan.bench.empty()) {
      const auto file = bench->path();
      if (!file) return forward_error(file);
      options.command.emplace_back("--result");
      options.command.push_back(file->string());
    }
    options.tool_version = JOULEPROF_VERSION;
    options.devices = plan.devices;
    options.idle_before = kSettle;
    options.idle_after = Duration{};
    std::unique_ptr<session::OutputTap> tap;
    if (!plan.throughput.empty()) {
      auto opened = session::OutputTap::open(plan.throughput);
      if (!opened) return forward_error(opened);
      tap = std::move(*opened);
    }
    auto result = session::run(options, std::move(meters->meters), &destination->sink());
    session::WorkReport report;
    if (tap) report.printed = tap->finish();
    if (!result) return forward_error(result);
    if (result->start_error) return tl::unexpected(*result->start_error);
    session::Execution execution;
    execution.exit_status = result->exit_status.value_or(kNotStarted);
    execution.recording = run_file();
    execution.measure = [this, plan, bench, report](model::SweepRun& run) mutable {
      auto recorded = recording::read_recording(run_file());
      if (!recorded) {
        run.unranked = recorded.error().message;
        return;
      }
      if (!plan.bench.empty() && !read_bench(*bench, report, run)) return;
      session::measure_run(analysis::Run(std::move(*recorded)), plan, report, run);
    };
    return execution;
  }

  static bool read_bench(const BenchResult& bench, session::WorkReport& report,
                         model::SweepRun& run) {
    const auto document = bench.read();
    if (!document || document->cases.empty()) {
      run.unranked = document ? "the workload measured nothing" : document.error().message;
      return false;
    }
    const auto& done = document->cases.front();
    report.bench = session::BenchWork{done.window, done.iterations};
    if (!done.steady) run.remark = "not steady: " + done.not_steady;
    return true;
  }

  void conclude(const session::SweepPlanner& planner) const {
    if (quiet_) return;
    std::vector<report::AdvisedSweep> sweeps;
    sweeps.push_back(
        {analysis::sweep_of(planner.plan(), planner.runs()), fail(Errc::kInternal, "")});
    auto& [sweep, advice] = sweeps.front();
    report::RecommendationOptions options;
    options.choice = session::recommend_options(planner.plan(), sweep);
    options.sweep_file = output_;
    advice = analysis::recommend(sweep, options.choice);
    fmt::print(stderr, "\n{}{:<10} {}; {}\n{:<10} jouleprof recommend {}\n",
               report::recommendation_to_text(sweeps, options, text_options(STDERR_FILENO)),
               "ended", planner.why_ended(), "the settings were restored", "next",
               report::shell_word(output_));
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
