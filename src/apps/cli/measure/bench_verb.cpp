#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <system_error>

#include "apps/cli/exit_status.h"
#include "apps/cli/input.h"
#include "apps/cli/measure/bench_document.h"
#include "apps/cli/measure/trace_files.h"
#include "apps/cli/measuring.h"
#include "apps/cli/terminal.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/activity.h"
#include "report/bench.h"
#include "session/run/session.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

// A folder for the workload's result; it goes with this object.
class ResultFolder {
 public:
  ResultFolder() {
    std::error_code err;
    std::string name = (fs::temp_directory_path(err) / "jouleprof-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;
  ~ResultFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  bool exists() const { return !path_.empty(); }
  fs::path result() const { return path_ / "result.json"; }

 private:
  fs::path path_;
};

// A time as the workload's program reads it. Errors: invalid_argument.
Result<std::string> seconds_of(const char* option, const std::string& text) {
  const auto time = parse_duration(text);
  if (!time) return tl::unexpected(time.error());
  if (*time <= Duration{} || *time > std::chrono::hours{24}) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} {}: give a time above 0, such as 10s", option, text));
  }
  return shortest(seconds(*time));
}

class BenchVerb : public Verb {
 public:
  std::string_view name() const override { return "bench"; }

  void declare(CLI::App& app) override {
    app.add_option("WORKLOAD", workload_, "");
    app.add_option("-m,--model", model_, "");
    app.add_option("-s,--seq-length", length_, "")->check(CLI::PositiveNumber);
    app.add_option("--mode", mode_, "")
        ->check(CLI::IsMember({"eager", "compile", "graph", "train", "generate"}));
    app.add_option("--batch", batches_, "")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--new-tokens", new_tokens_, "")->check(CLI::Range(2, 1'000'000));
    app.add_option("--dtype", dtype_, "")
        ->check(CLI::IsMember({"auto", "float32", "float16", "bfloat16", "amp", "amp-bfloat16"}));
    app.add_option("--device", device_, "");
    app.add_option("--seed", seed_, "")->check(CLI::NonNegativeNumber);
    app.add_option("--min-time", min_time_, "");
    app.add_option("--max-time", max_time_, "");
    app.add_option("--target-rel", target_, "");
    app.add_option("--max-warm-up", max_warm_up_, "");
    app.add_flag("--torch-timer", torch_timer_, "");
    app.add_flag("--card", bench_.card, "");
    app.add_flag("--layers", layers_, "");
    app.add_option("-o,--output", output_, "");
    app.add_flag("-f,--force", force_, "");
    auto* json = app.add_flag("--json", json_, "");
    app.add_flag("--csv", csv_, "")->excludes(json);
    app.add_option("--devices", devices_, "")->delimiter(',')->envname("JOULEPROF_DEVICES");
    app.add_option("--idle", idle_, "")->envname("JOULEPROF_IDLE");
    app.add_option("--cpu-tdp", cpu_tdp_, "")->envname("JOULEPROF_CPU_TDP");
    app.add_option("--python", python_, "")->envname("JOULEPROF_PYTHON");
  }

  int run(const std::vector<std::string>&) override {
    const ResultFolder folder;
    if (!folder.exists()) {
      return complain({Errc::kUnavailable,
                       "no temporary folder can be made; set TMPDIR to one that can be written"},
                      kCannotWrite);
    }
    auto options = session_options(folder);
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
    if (!fs::exists(folder.result())) {
      return complain({Errc::kUnavailable,
                       fmt::format("the workload ended with status {} and without a result; its "
                                   "messages are above. If jouleprof is missing in {}: "
                                   "pip install 'jouleprof[bench]', or give --python",
                                   status, python_)},
                      status != 0 ? status : kInternalError);
    }
    const int shown = show(folder.result(), *destination);
    return status != 0 ? status : shown;
  }

 private:
  Result<session::SessionOptions> session_options(const ResultFolder& folder) {
    if (workload_.empty()) workload_ = model_;
    if (workload_.empty() || (!model_.empty() && model_ != workload_)) {
      return fail(Errc::kInvalidArgument,
                  "give one workload, such as: jouleprof bench deit-b\n"
                  "Try 'jouleprof bench --help'.");
    }
    auto command = workload_command(folder);
    if (!command) return forward_error(command);
    session::SessionOptions options;
    options.command = std::move(*command);
    options.tool_version = JOULEPROF_VERSION;
    options.devices = devices_;
    const auto idle = parse_duration(idle_);
    if (!idle) return tl::unexpected(idle.error());
    options.idle_before = options.idle_after = *idle;
    if (!layers_) return options;
    options.trace.kernels = options.trace.layers = true;
    if (auto found = find_trace_files(options.trace); !found) return forward_error(found);
    return options;
  }

  Result<std::vector<std::string>> workload_command(const ResultFolder& folder) const {
    std::string batches;
    for (const int batch : batches_)
      batches += (batches.empty() ? "" : ",") + std::to_string(batch);
    std::vector<std::string> command{python_,   "-m",           "jouleprof.bench",
                                     workload_, "--result",     folder.result().string(),
                                     "--mode",  mode_,          "--batch",
                                     batches,   "--new-tokens", std::to_string(new_tokens_),
                                     "--dtype", dtype_,         "--device",
                                     device_,   "--seed",       std::to_string(seed_)};
    const auto add = [&](const char* option, std::string value) {
      command.emplace_back(option);
      command.push_back(std::move(value));
    };
    for (const auto& [option, text] :
         {std::pair{"--min-time", &min_time_}, std::pair{"--max-time", &max_time_},
          std::pair{"--max-warm-up", &max_warm_up_}}) {
      auto time = seconds_of(option, *text);
      if (!time) return forward_error(time);
      add(option, std::move(*time));
    }
    if (length_) add("--seq-length", std::to_string(*length_));
    if (torch_timer_) command.emplace_back("--torch-timer");
    if (target_.empty()) return command;
    std::string_view digits = target_;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    const auto percent = parse_number(trim(digits));
    if (!percent || *percent <= 0 || *percent >= 100) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--target-rel {}: give percent, such as 1%", target_));
    }
    add("--target-rel", shortest(*percent / 100));
    return command;
  }

  Result<meters::MeterSet> open() const {
    const auto cpu_tdp = parse_cpu_tdp(cpu_tdp_);
    if (!cpu_tdp) return tl::unexpected(cpu_tdp.error());
    meters::MeterOptions options;
    // Prefill and decode are short windows.
    options.demand.shortest_window = std::chrono::milliseconds{mode_ == "generate" ? 50 : 1000};
    options.demand.state_period = std::chrono::milliseconds{250};  // clocks show a steady state
    options.cpu_tdp = *cpu_tdp;
    return meters::open_meters(options);
  }

  int show(const fs::path& path, const Destination& destination) const {
    const auto text = read_file(path);
    if (!text) return complain(text.error(), kInternalError);
    const auto document = parse_bench_document(*text);
    if (!document) return complain(document.error(), kInternalError);
    auto recording = destination.recording();
    if (!recording) return complain(recording.error(), kInternalError);
    const analysis::Run run(std::move(*recording));
    std::vector<report::BenchResult> results;
    for (const auto& bench : document->cases) {
      results.push_back({bench, analysis::bench_energy(run, bench)});
    }
    const auto options = text_options(STDOUT_FILENO);
    const auto written = write_output("", false, [&](std::ostream& out) {
      out << (json_  ? report::bench_to_json(*document, results)
              : csv_ ? report::bench_to_csv(results)
                     : report::bench_to_text(results, bench_, options));
      if (layers_ && !json_ && !csv_) out << layer_text(run, results, options);
    });
    if (!written) return complain(written.error(), kCannotWrite);
    if (!destination.path().empty()) {
      fmt::print(stderr, "jouleprof: wrote {}; next: jouleprof report {}\n",
                 destination.path().string(), destination.path().string());
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
                      {.by = report::ActivityBy::kLayer, .sort = {}, .top = 20, .depth = {}},
                      options);
  }

  std::string workload_;
  std::string model_;
  std::optional<int> length_;
  std::string mode_ = "eager";
  std::vector<int> batches_ = {1};
  int new_tokens_ = 128;
  std::string dtype_ = "auto";
  std::string device_ = "auto";
  std::int64_t seed_ = 0;
  std::string min_time_ = "3s";
  std::string max_time_ = "30s";
  std::string target_;
  std::string max_warm_up_ = "15s";
  bool torch_timer_ = false;
  report::BenchOptions bench_;
  bool layers_ = false;
  std::string output_;
  bool force_ = false;
  bool json_ = false;
  bool csv_ = false;
  std::vector<std::string> devices_;
  std::string idle_ = "2s";
  std::string cpu_tdp_;
  std::string python_ = "python3";
};

}  // namespace

std::unique_ptr<Verb> make_bench() { return std::make_unique<BenchVerb>(); }

}  // namespace jouleprof::cli
