#include <fmt/format.h>

#include "apps/cli/bench/bench_workload.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/activity/activity.h"
#include "report/html/page.h"
#include "report/results/bench.h"
#include "session/run/session.h"

namespace jouleprof::cli {
namespace {

class BenchVerb : public Verb {
 public:
  std::string_view name() const override { return "bench"; }

  void declare(CLI::App& app) override {
    add(app, "WORKLOAD", word_);
    add(app, "--model", model_);
    workload_.declare(app);
    add(app, "--batch", batches_)->delimiter(',')->check(above_zero());
    add(app, "--seed", seed_)->check(not_negative());
    add(app, "--max-time", max_time_);
    auto* target = add(app, "--target-rel", target_);
    auto* timer = add(app, "--torch-timer", torch_timer_);
    add(app, "--steady-state", steady_state_)
        ->check(one_of({"ml.energy"}))
        ->excludes(target)
        ->excludes(timer);
    add(app, "--card", bench_.card);
    add(app, "--details", details_);
    auto* layers = add(app, "--layers", layers_);
    add(app, "--top", top_)->needs(layers);
    add(app, "--depth", depth_)->needs(layers)->check(above_zero());
    add(app, "--output", output_);
    add(app, "--force", force_);
    auto* page = add(app, "--html", html_);
    add(app, "--redact", redact_)->needs(page);
    auto* json = add(app, "--json", json_);
    add(app, "--csv", csv_)->excludes(json);
    sensors_.declare(app);
    add(app, "--idle", idle_);
  }

  int run(const std::vector<std::string>&) override {
    if (!html_.empty()) {
      if (const auto possible = check_output({html_, force_, {output_}}); !possible) {
        return complain(possible.error(), kUsageError);
      }
    }
    const BenchResult result;
    const auto path = result.path();
    if (!path) return complain(path.error(), kCannotWrite);
    auto options = session_options(path->string());
    if (!options) return complain(options.error(), kUsageError);
    auto meters = open();
    if (!meters) return complain(meters.error(), kUsageError);
    choose_clock_of_layers(*meters, *options);
    auto destination =
        output_.empty() ? Result<Destination>(Destination{}) : Destination::file(output_, force_);
    if (!destination) return complain(destination.error(), kCannotWrite);
    options->trace.recording = destination->path();
    const auto ran = session::run(*options, std::move(meters->meters), &destination->sink());
    if (!ran) return complain(ran.error(), kUsageError);
    if (ran->start_error) {
      destination->remove();
      return complain({ran->start_error->code,
                       fmt::format("{}; --python names the Python that runs the workload",
                                   ran->start_error->message)},
                      kUsageError);
    }
    const int status = ran->exit_status.value_or(kInternalError);
    if (!std::filesystem::exists(*path)) {
      if (status == kUsageError) return status;  // the workload said what is wrong
      return complain({Errc::kUnavailable,
                       fmt::format("the workload ended with status {} and without a result; its "
                                   "messages are above. If jouleprof is missing in {}: "
                                   "pip install '.[bench]' in a clone, or give --python",
                                   status, workload_.python)},
                      status != 0 ? status : kInternalError);
    }
    const int shown = show(result, *destination);
    return status != 0 ? status : shown;
  }

 private:
  Result<session::SessionOptions> session_options(const std::string& result) {
    if (word_.empty()) word_ = model_;
    if (word_.empty() || (!model_.empty() && model_ != word_)) {
      return fail(Errc::kInvalidArgument,
                  "give one workload, such as: jouleprof bench deit-b\n"
                  "Try 'jouleprof bench --help'.");
    }
    auto command = workload_command(result);
    if (!command) return forward_error(command);
    session::SessionOptions options;
    options.command = std::move(*command);
    options.tool_version = JOULEPROF_VERSION;
    options.devices = sensors_.devices;
    options.idle_before = idle_;
    // A board's clocks stay up for a second after the last context: that time shows no rest.
    options.idle_after = std::min<Duration>(idle_, std::chrono::milliseconds{500});
    if (!layers_) return options;
    options.trace.kernels = options.trace.layers = true;
    if (auto found = find_trace_files(options.trace); !found) return forward_error(found);
    return options;
  }

  Result<std::vector<std::string>> workload_command(const std::string& result) const {
    auto words = workload_.command(word_, batches_);
    if (!words) return words;
    const auto most = seconds_of("--max-time", max_time_);
    if (!most) return forward_error(most);
    std::vector<std::string>& command = *words;
    for (const auto& word : {std::string("--result"), result, std::string("--seed"),
                             std::to_string(seed_), std::string("--max-time"), *most}) {
      command.push_back(word);
    }
    if (torch_timer_) command.emplace_back("--torch-timer");
    if (!steady_state_.empty()) {
      command.emplace_back("--steady-state");
      command.push_back(steady_state_);
    }
    if (target_.empty()) return words;
    std::string_view digits = target_;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    const auto percent = parse_number(trim(digits));
    if (!percent || *percent <= 0 || *percent >= 100) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--target-rel {}: give percent, such as 1%", target_));
    }
    command.emplace_back("--target-rel");
    command.push_back(shortest(*percent / 100));
    return words;
  }

  Result<meters::MeterSet> open() const {
    const auto options = sensors_.meters(
        {.shortest_window = workload_.shortest_window(),
         .state_period = std::chrono::milliseconds{250}});  // clocks show a steady state
    if (!options) return forward_error(options);
    return meters::open_meters(*options);
  }

  int show(const BenchResult& result, const Destination& destination) const {
    const auto document = result.read();
    if (!document) return complain(document.error(), kInternalError);
    auto recording = destination.recording();
    if (!recording) return complain(recording.error(), kInternalError);
    const analysis::Run run(std::move(*recording));
    std::vector<report::BenchResult> results;
    for (const auto& bench : document->cases) {
      results.push_back({bench, analysis::bench_energy(run, bench)});
    }
    auto options = text_options(STDOUT_FILENO);
    options.details = details_;
    std::string text = json_  ? report::bench_to_json(*document, results)
                       : csv_ ? report::bench_to_csv(results)
                              : report::bench_to_text(results, bench_, options);
    if (layers_ && !json_ && !csv_) text += layer_text(run, results, options);
    const auto written = write_output(Output{}, text);
    if (!written) return complain(written.error(), kCannotWrite);
    if (!html_.empty()) {
      const auto page = report::bench_to_html(*document, results, {JOULEPROF_VERSION, "", redact_});
      if (!page) return complain(page.error(), kInternalError);
      if (const auto made = write_output({html_, true, {}}, *page); !made) {
        return complain(made.error(), kCannotWrite);
      }
    }
    if (const auto kept = destination.kept(); !kept.empty()) {
      say_wrote(kept.string());
    }
    return kDone;
  }

  // The energy of each layer in the steady part of the last case.
  std::string layer_text(const analysis::Run& run, const std::vector<report::BenchResult>& results,
                         const report::TextOptions& options) const {
    if (results.empty() || !results.back().energy) return {};
    const auto work = run.span();
    if (!work) return {};
    const auto& profile = results.back().energy->profile;
    const auto& activity =
        run.activity({.from = profile.begin - work->begin, .to = profile.end - work->begin});
    if (!activity) return fmt::format("\nlayers     unavailable: {}\n", activity.error().message);
    return '\n' + report::activity_to_text(
                      *activity,
                      {.by = report::ActivityBy::kLayer, .sort = {}, .top = top_, .depth = depth_},
                      options);
  }

  std::string word_;
  std::string model_;
  BenchWorkload workload_;
  std::vector<int> batches_ = {1};
  std::int64_t seed_ = 0;
  Duration max_time_ = std::chrono::seconds{30};
  std::string target_;
  bool torch_timer_ = false;
  bool details_ = false;
  std::string steady_state_;
  report::BenchOptions bench_;
  bool layers_ = false;
  std::size_t top_ = 20;
  std::optional<std::size_t> depth_;
  std::string output_;
  bool force_ = false;
  std::string html_;
  bool redact_ = false;
  bool json_ = false;
  bool csv_ = false;
  SensorChoice sensors_;
  Duration idle_ = std::chrono::seconds{2};
};

}  // namespace

std::unique_ptr<Verb> make_bench() { return std::make_unique<BenchVerb>(); }

}  // namespace jouleprof::cli
