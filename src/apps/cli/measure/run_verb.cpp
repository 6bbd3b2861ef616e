#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "analysis/run.h"
#include "apps/cli/measure/rest_watch.h"
#include "apps/cli/measure/run_command.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/activity/activity.h"
#include "report/cells.h"
#include "report/format/format.h"
#include "report/snapshot.h"
#include "session/run/session.h"
#include "session/run/signals.h"
#include "session/sampling/recorded_sampling.h"
#include "session/sweep/output_tap.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;
constexpr Duration kCounterOfKernels = std::chrono::milliseconds{500};
constexpr std::size_t kShownKernels = 5;

class RunVerb : public Verb {
 public:
  std::string_view name() const override { return "run"; }
  bool takes_command() const override { return true; }

  void declare(CLI::App& app) override {
    auto* output = add(app, "--output", output_);
    auto* force = add(app, "--force", force_);
    auto* append = add(app, "--append", append_.file)->excludes(output);
    add(app, "--no-record", no_record_)->excludes(output)->excludes(append);
    auto* json = add(app, "--json", json_);
    auto* html = add(app, "--html", html_);
    auto* svg = add(app, "--svg", svg_);
    add(app, "--per", per_);
    add(app, "--whole-machine", whole_machine_);
    auto* printed = add(app, "--per-regex", per_regex_);
    auto* attached =
        add(app, "--pid", pids_)->check(above_zero())->allow_extra_args(false)->delimiter(',');
    sensors_.declare(app);
    add(app, "--interval", interval_);
    add(app, "--shortest", shortest_);
    add(app, "--idle", idle_);
    auto* kernels = add(app, "--kernels", kernels_);
    add(app, "--layers", layers_);
    add(app, "--serving", serving_);
    add(app, "--replay", replay_)->expected(0, 1)->default_str(kReplay);
    add(app, "--trace", events_)->needs(kernels);
    add(app, "--no-memory", no_memory_);
    add(app, "--counter-interval", counter_interval_);
    add(app, "--trace-folder", trace_folder_)->needs("--pid");
    add(app, "--quiet", quiet_);
    add(app, "--details", details_);
    costs_.declare(app);
    add(app, "--duration", duration_);
    auto* repeat = add(app, "--repeat", repeats_)->check(within(2, 1000));
    // What is of one run, or would have to be one file for all.
    for (auto* option : {force, json, html, svg, attached, printed}) repeat->excludes(option);
  }

  int run(const std::vector<std::string>& command) override {
    if (!command.empty() && !pids_.empty()) {
      return complain({Errc::kInvalidArgument,
                       "--pid measures processes that are running; leave out the command or --pid"},
                      kNotStarted);
    }
    if (command.empty() && pids_.empty()) {
      return complain({Errc::kInvalidArgument,
                       "say what to measure: jouleprof run COMMAND, or jouleprof run --pid PID\n"
                       "Try 'jouleprof run --help'."},
                      kNotStarted);
    }
    if (auto units = choose_units(); !units) return complain(units.error(), kNotStarted);
    auto factors = costs_.factors();
    if (!factors) return complain(factors.error(), kNotStarted);
    factors_ = std::move(*factors);
    return repeats_ > 0 ? run_repeatedly(command) : run_once(command);
  }

 private:
  // Each run is a part of one file. Ends where a run fails, with its status.
  int run_repeatedly(const std::vector<std::string>& command) {
    if (factors_.series) {
      return complain({Errc::kInvalidArgument,
                       "--carbon of --repeat is a number: runs at different hours would differ by "
                       "the grid alone"},
                      kNotStarted);
    }
    if (!no_record_ && append_.file.empty()) {
      const auto name = output_.empty() ? default_recording_name(command) : fs::path(output_);
      std::error_code ignored;
      if (fs::exists(name, ignored)) {
        return complain({Errc::kInvalidArgument,
                         fmt::format("{} exists; choose another name, or add to it with --append",
                                     name.string())},
                        kNotStarted);
      }
      append_.file = name.string();
    }
    std::vector<RepeatedRun> runs;
    runs_ = &runs;
    for (unsigned i = 0; i < repeats_; ++i) {
      output_.clear();
      const int status = run_once(command);
      if (status != kDone || runs.size() != i + 1) return status;
    }
    const auto text = text_options(STDERR_FILENO);
    say(repeats_to_text(runs, unit_, factors_, text));
    if (!no_record_ && !quiet_) {
      say("details    jouleprof report {} --run N\n",
          report::printable(report::shell_word(append_.file), text.ascii));
    }
    return kDone;
  }

  int run_once(const std::vector<std::string>& command) {
    const auto here = session::run_info_here(JOULEPROF_VERSION);
    if (auto chosen = choose_output(here); !chosen) return complain(chosen.error(), kNotStarted);
    if (auto possible = check_outputs(command); !possible) {
      return complain(possible.error(), kNotStarted);
    }
    auto options = session_options(command);
    if (!options) return complain(options.error(), kNotStarted);
    JobPlace place = !pids_.empty() ? JobPlace{} : find_job_place();
    if (place.membership && repeats_ > 0) {
      return complain({Errc::kInvalidArgument,
                       "--repeat: another run of this job records this command; leave it out"},
                      kNotStarted);
    }
    if (place.membership) {
      return run_as_member(
          command, std::move(*place.membership), is_traced(), quiet_,
          [&](pid_t child, auto& signals) { return succeed(child, *options, signals); });
    }
    if (place.lock) lead(*place.lock, *options);
    Result<session::SessionResult> result;
    Destination destination;
    std::unique_ptr<session::OutputTap> tap;
    if (!per_regex_.empty()) {
      auto opened = session::OutputTap::open(per_regex_);
      if (!opened) return complain(opened.error(), kNotStarted);
      tap = std::move(*opened);
    }
    try {
      result = measure(*options, destination);
    } catch (const std::exception& e) {  // no memory, no threads
      result = fail(Errc::kUnavailable, e.what());
    }
    if (tap) note_units(*tap);
    if (!result) {
      destination.remove();
      if (!pids_.empty() || result.error().code != Errc::kUnavailable) {
        return complain(result.error(), kNotStarted);
      }
      return run_unmeasured(command, result.error());
    }
    return conclude(*result, destination);
  }

  Result<void> choose_output(const model::RunInfo& here) {
    std::string& chosen = append_.file.empty() ? output_ : append_.file;
    auto name = output_name(chosen, here.host, here.rank);
    if (!name) return forward_error(name);
    chosen = std::move(*name);
    if (append_.file.empty()) return {};
    auto output = append_.output();
    if (!output) return forward_error(output);
    output_ = std::move(*output);
    return {};
  }

  // As the job's recorder on this host: others find the session by the lock.
  void lead(session::RecorderLock& lock, session::SessionOptions& options) {
    take_over(lock, options);
    lock_ = &lock;
    options.on_socket = [&lock, &options](const std::filesystem::path& socket) {
      std::error_code err;
      const auto& path = options.trace.recording;
      lock.publish(socket, path.empty() ? path : std::filesystem::absolute(path, err));
    };
  }

  // To who follows if this process is killed: also between the file's creation and its first byte.
  Result<Destination> open_announced(const std::vector<std::string>& command) {
    const auto announce = [this](const std::filesystem::path& recording) {
      std::error_code err;
      if (lock_ != nullptr && !recording.empty())
        lock_->announce(std::filesystem::absolute(recording, err));
    };
    std::error_code ignored;
    if (!no_record_ && !std::filesystem::exists(output_, ignored)) announce(output_);
    auto opened = open_destination(command);
    if (opened) announce(opened->path());
    return opened;
  }

  // The recorder died, and the command runs: the first process of the job to notice records from
  // now on, and the others join it.
  session::Succession succeed(pid_t child, const session::SessionOptions& options,
                              std::unique_ptr<session::SignalStream>& signals) {
    JobPlace place = find_next_place(child);
    if (place.membership) return {std::move(place.membership), false};
    if (!place.lock) return {};
    session::SessionOptions rest = options;
    rest.attach = {child};
    rest.owns_attached = true;
    rest.trace = {};
    rest.remarks.push_back(
        "windows and kernels of commands that ran when the job's recorder was killed are not in "
        "this recording, nor is that recorder's own command");
    lead(*place.lock, rest);
    Destination destination;
    auto meters = open();
    auto opened = open_announced(rest.command);
    if (!meters || !opened) return {};
    destination = std::move(*opened);
    rest.trace.recording = destination.path();
    signals.reset();
    const auto result = session::run(rest, std::move(meters->meters), &destination.sink());
    if (!result) {
      destination.remove();
      if (auto again = session::SignalStream::create()) signals = std::move(*again);
      return {};
    }
    if (result->sink_error) complain(*result->sink_error, kCannotWrite);
    conclude(destination);
    return {std::nullopt, true};
  }

  // After another recorder of the job, which was killed or had no more commands. Its file stays.
  void take_over(const session::RecorderLock& lock, session::SessionOptions& options) {
    const auto& left = lock.left();
    std::error_code err;
    if (left.recording.empty() || !std::filesystem::exists(left.recording, err)) return;
    const bool exists = std::filesystem::exists(output_, err);
    if (exists && is_name_of(left.recording, output_)) output_ = next_name(output_);
    const std::string before = report::printable(left.recording.string());
    if (left.was_killed) {
      options.remarks.push_back(
          fmt::format("the job's recorder on this host was killed; what it recorded is in {}, and "
                      "the time between the two recordings is in neither",
                      before));
      say("jouleprof: {}\n", options.remarks.back());
    } else if (!quiet_) {
      say("jouleprof: other processes of this job on this host are in {}\n", before);
    }
  }

  Result<session::SessionOptions> session_options(const std::vector<std::string>& command) const {
    session::SessionOptions options;
    options.command = command;
    options.tool_version = JOULEPROF_VERSION;
    options.devices = sensors_.devices;
    options.attach.assign(pids_.begin(), pids_.end());
    options.idle_before = options.idle_after = idle_;
    options.duration = duration_;
    if (auto traced = choose_trace(options.trace); !traced) return forward_error(traced);
    return options;
  }

  Result<void> choose_trace(session::TraceOptions& trace) const {
    if (!trace_folder_.empty()) {
      trace.folder = trace_folder_;
      return {};
    }
    trace.serving = serving_;
    if (serving_ && !pids_.empty()) {
      return fail(Errc::kInvalidArgument,
                  "--serving needs the command from its start: jouleprof run --serving -- COMMAND");
    }
    if (!kernels_ && !layers_ && replay_.empty()) return {};
    if (!pids_.empty()) {
      return fail(Errc::kInvalidArgument,
                  "--kernels, --layers and --replay need the command from its start: jouleprof run "
                  "--kernels "
                  "-- COMMAND");
    }
    trace.kernels = kernels_ || !replay_.empty();
    trace.layers = layers_ || !replay_.empty();
    trace.events = events_;
    if (!replay_.empty()) {
      const auto each = parse_replay(replay_);
      if (!each) return forward_error(each);
      trace.replay_seconds = *each;
    }
    return find_trace_files(trace);
  }

  // The number of units, or how to read it in the command's output.
  Result<void> choose_units() {
    if (per_regex_.empty()) {
      if (per_.empty()) return {};
      auto unit = report::parse_unit_count(per_);
      if (!unit) return forward_error(unit);
      unit_ = std::move(*unit);
      return {};
    }
    if (!pids_.empty()) {
      return fail(Errc::kInvalidArgument,
                  "--per-regex reads the output of a command that run starts");
    }
    return check_number_expression("--per-regex", per_regex_, "([0-9]+) images");
  }

  // The last number that the command printed so is the number of units.
  void note_units(session::OutputTap& tap) {
    const auto found = tap.finish();
    if (!found) return say("jouleprof: {}\n", found.error().message);
    const auto& numbers = found->numbers;
    if (numbers.empty() || numbers.back().value <= 0) {
      say("jouleprof: no line of the command's output has a number above 0 that --per-regex finds: "
          "the energy of one {} is unknown\n",
          per_.empty() ? "unit" : per_);
      return;
    }
    unit_ = report::UnitCount{numbers.back().value, per_.empty() ? "unit" : per_};
  }

  bool is_traced() const {
    return kernels_ || layers_ || !replay_.empty() || !trace_folder_.empty();
  }

  Result<meters::MeterSet> open() const {
    meters::Demand demand;
    // The regression of kernels needs the board's power samples, and the counter now and then.
    const std::chrono::seconds usual{is_traced() || serving_ ? 1 : 5};
    demand.shortest_window = shortest_.value_or(usual);
    if (counter_interval_) {
      if (*counter_interval_ < std::chrono::milliseconds{10} ||
          *counter_interval_ > std::chrono::minutes{10}) {
        return fail(Errc::kInvalidArgument, "--counter-interval must be from 10ms to 10min");
      }
      demand.counter_period = *counter_interval_;
    } else if (is_traced() && !serving_ && !shortest_) {
      demand.counter_period = kCounterOfKernels;
    }
    if (interval_) {
      if (*interval_ < std::chrono::milliseconds{1}) {
        return fail(Errc::kInvalidArgument, "--interval must be at least 1ms");
      }
      demand.poll_period = *interval_;
    }
    const auto sensors = sensors_.meters(demand);
    if (!sensors) return forward_error(sensors);
    return meters::open_meters(*sensors);
  }

  // A name that the user chose and may not have is an error before anything starts. A place where
  // nothing can be written must not keep the command from running.
  Result<Destination> open_destination(const std::vector<std::string>& command) const {
    if (no_record_) return Destination{};
    const bool chosen = !output_.empty();
    const std::filesystem::path path = chosen ? output_ : default_recording_name(command).string();
    auto destination = Destination::file(path, force_);
    if (destination) return destination;
    if (chosen && destination.error().code == Errc::kInvalidArgument) return destination;
    complain({destination.error().code, fmt::format("{}; measuring goes on without a recording",
                                                    destination.error().message)},
             kCannotWrite);
    return Destination{};
  }

  Result<void> check_outputs(const std::vector<std::string>& command) const {
    std::vector<std::string> others = command;
    const Output outputs[] = {
        {output_, true, {}, true}, {json_, true, {}}, {html_, force_, {}}, {svg_, force_, {}}};
    for (Output output : outputs) {
      if (output.path.empty()) continue;
      output.others = others;
      if (auto possible = check_output(output); !possible) return possible;
      others.push_back(output.path);
    }
    return {};
  }

  Result<session::SessionResult> measure(session::SessionOptions& options,
                                         Destination& destination) {
    auto meters = open();
    if (!meters) return forward_error(meters);
    if (is_traced() && !no_memory_) driver_ = meters->gpu_driver;
    for (const auto& missing : meters->missing) {
      if (missing.error.code == Errc::kTimeout) {
        say("jouleprof: {}: {}; the command is measured without them\n", missing.what,
            missing.error.message);
      }
    }
    choose_clock_of_layers(*meters, options);
    const session::SignalsLater until_caught;
    auto opened = open_announced(options.command);
    if (!opened) return forward_error(opened);
    destination = std::move(*opened);
    options.trace.recording = destination.path();
    StatusBar bar(!quiet_);
    if (bar.width() > 0) {
      options.on_snapshot = [&bar](const model::Snapshot& snapshot) {
        bar.show(report::live_line(snapshot, bar.width()));
      };
    }
    return session::run(options, std::move(meters->meters), &destination.sink());
  }

  int conclude(const session::SessionResult& result, Destination& destination) const {
    if (result.start_error) {
      destination.remove();
      return complain(*result.start_error, result.exit_status.value_or(kNotStarted));
    }
    const int status = !pids_.empty() ? kDone : result.exit_status.value_or(kNotStarted);
    const KeepStatus keep(status);
    try {
      if (result.sink_error) {
        const std::string kept = destination.kept().string();
        complain({result.sink_error->code,
                  fmt::format(
                      "the recording stopped early: {}; {}", result.sink_error->message,
                      kept.empty() ? "no recording was kept" : "what came before is in " + kept)},
                 status);
      }
      conclude(destination);
    } catch (const std::exception& e) {
      say("jouleprof: no summary: {}\n", e.what());
    }
    return status;
  }

  void conclude(const Destination& destination) const {
    auto recording = destination.recording();
    if (!recording) return void(complain(recording.error(), kInternalError));
    const KernelMemory memory(driver_);
    memory.recall(*recording, destination.kept());
    const analysis::Run run(std::move(*recording));
    const auto& profile = run.profile();
    if (!profile) return void(complain(profile.error(), kInternalError));
    store_observed_levels(*profile);
    if (const auto& activity = run.activity()) memory.store(*activity);
    if (runs_ != nullptr) {
      runs_->push_back(RepeatedRun::of(*profile, whole_machine_));
      append_.conclude(destination, true);
      if (!quiet_) say("jouleprof: {}\n", progress_text(runs_->back(), runs_->size(), repeats_));
      return;
    }
    std::optional<report::Costs> costs;
    if (factors_.any()) {
      auto found = report::costs_of(run, {}, factors_, whole_machine_);
      if (found) {
        costs = std::move(*found);
      } else {
        complain(found.error(), kInternalError);
      }
    }
    auto per =
        unit_ ? std::optional(report::per_unit(*profile, *unit_, whole_machine_)) : std::nullopt;
    if (per && costs) report::add_costs(*per, *costs);
    if (!json_.empty()) {
      const auto written = write_output(
          {json_, true, {}},
          report::to_json(*profile, costs ? &*costs : nullptr, nullptr, per ? &*per : nullptr));
      if (!written) complain(written.error(), kCannotWrite);
    }
    const KeptRecording kept = append_.conclude(destination, quiet_);
    if (!html_.empty()) write_as("html", html_, run, kept);
    if (!svg_.empty()) write_as("svg", svg_, run, kept);
    if (quiet_) return;
    auto text = text_options(STDERR_FILENO);
    text.recording_path = kept.path.string();
    text.whole_machine = whole_machine_;
    text.details = details_;
    const std::string below = (per ? report::per_unit_to_text(*per, text) : "") +
                              (costs ? report::costs_to_text(*costs, text) : "");
    say(report::to_text(*profile, text, below));
    if (is_traced()) show_kernels(run, kept);
    if (serving_) show_requests(run, kept);
  }

  void write_as(const char* format, const std::string& path, const analysis::Run& run,
                const KeptRecording& kept) const {
    report::FormatOptions options;
    options.version = JOULEPROF_VERSION;
    options.text.recording_path = kept.path.filename().string();
    options.text.whole_machine = whole_machine_;
    options.costs = factors_;
    write_run(run, Input{}, *report::find_format(format), options, {path, true, {}});
  }

  // The first few, and how to see the rest.
  void show_kernels(const analysis::Run& run, const KeptRecording& kept) const {
    const auto& activity = run.activity();
    if (!activity) return void(complain(activity.error(), kInternalError));
    const auto text = text_options(STDERR_FILENO);
    const std::string kernels = report::activity_to_brief_text(*activity, kShownKernels, text);
    if (!kernels.empty()) say("\n{}", kernels);
    const auto& collectives = run.collectives();
    if (collectives && collectives->has_split()) {
      say("\n{}", report::collectives_to_brief_text(*collectives, text));
    }
    if (activity->empty() || kept.path.empty()) return;
    say("next       jouleprof report{} --by {}\n", report::printable(kept.words(), text.ascii),
        layers_ || !replay_.empty() ? "layer" : "kernel");
  }

  void show_requests(const analysis::Run& run, const KeptRecording& kept) const {
    const auto& serving = run.serving();
    if (!serving) return void(complain(serving.error(), kInternalError));
    if (serving->requests.empty()) return;
    const auto text = text_options(STDERR_FILENO);
    say("\n{}", report::serving_to_brief_text(*serving, text));
    if (kept.path.empty()) return;
    say("next       jouleprof report{} --by request\n",
        report::printable(kept.words(), text.ascii));
  }

  std::string output_;
  AppendChoice append_;
  bool force_ = false;
  bool no_record_ = false;
  std::string json_;
  std::string html_;
  std::string svg_;
  std::string per_;
  bool whole_machine_ = false;  // what is quoted
  std::string per_regex_;
  std::optional<report::UnitCount> unit_;
  CostChoice costs_;
  report::CostFactors factors_;
  std::optional<Duration> duration_;  // absent: to the end of the command
  unsigned repeats_ = 0;              // 0: once, with the whole summary
  std::vector<RepeatedRun>* runs_ = nullptr;
  std::vector<int> pids_;  // empty: the command is measured
  SensorChoice sensors_;
  std::optional<Duration> interval_;
  std::optional<Duration> shortest_;
  bool kernels_ = false;
  bool layers_ = false;
  bool events_ = false;
  bool serving_ = false;
  std::string replay_;  // empty: not asked for
  bool no_memory_ = false;
  std::string driver_;  // of the GPUs; empty: nothing is remembered
  std::optional<Duration> counter_interval_;
  std::string trace_folder_;
  Duration idle_ = std::chrono::seconds{1};
  bool quiet_ = false;
  bool details_ = false;
  session::RecorderLock* lock_ = nullptr;  // of the job's recorder
};

}  // namespace

std::unique_ptr<Verb> make_run() { return std::make_unique<RunVerb>(); }

}  // namespace jouleprof::cli
