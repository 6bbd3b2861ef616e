#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/compare/sides.h"
#include "apps/cli/compare/compared_runs.h"
#include "apps/cli/control/sweep_choices.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/result.h"
#include "base/say.h"
#include "base/text.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "report/html/page.h"
#include "report/results/comparison.h"

namespace jouleprof::cli {
namespace {

// The options of compare that say what is written where.
struct CompareOutputs {
  bool json = false;
  std::string html;
  bool redact = false;               // of `html`
  std::vector<std::string> formats;  // KIND=FILE, or a KIND of the standard output
  std::size_t top = 20;
  bool details = false;

  void declare(CLI::App& app);
  // Errors: invalid_argument where a file is one of `inputs` or named twice.
  Result<void> check(const std::vector<std::string>& inputs) const;
  // Existing files are replaced, but none of `inputs`. Returns the exit status.
  int write(report::ComparisonReport report, const std::vector<std::string>& inputs) const;
};

struct CompareFormat {
  std::string_view kind;
  std::string (*text)(const report::ComparisonReport&);
};

constexpr CompareFormat kCompareFormats[] = {
    {"markdown", report::comparison_to_markdown},
    {"junit", report::comparison_to_junit},
    {"benchmark", report::comparison_to_benchmark},
    {"github", report::comparison_to_github},
};

// One word of --format. An empty file: the standard output.
Result<std::pair<const CompareFormat*, std::string>> parse_format(const std::string& word) {
  const auto equals = word.find('=');
  const bool has_file = equals != std::string::npos && equals + 1 < word.size();
  for (const auto& format : kCompareFormats) {
    // Annotations are read from the output of a workflow, and the others from files.
    if (word.substr(0, equals) != format.kind || has_file == (format.kind == "github")) continue;
    return std::pair(&format, has_file ? word.substr(equals + 1) : std::string());
  }
  return fail(
      Errc::kInvalidArgument,
      fmt::format("--format {}: give markdown=FILE, junit=FILE, benchmark=FILE or github", word));
}

void CompareOutputs::declare(CLI::App& app) {
  add(app, "--top", top);
  add(app, "--details", details);
  add(app, "--json", json);
  auto* page = add(app, "--html", html);
  add(app, "--redact", redact)->needs(page);
  add(app, "--format", formats)->allow_extra_args(false);
}

Result<void> CompareOutputs::check(const std::vector<std::string>& inputs) const {
  std::vector<std::string> others = inputs;
  std::vector<std::string> paths{html};
  for (const auto& word : formats) {
    const auto format = parse_format(word);
    if (!format) return forward_error(format);
    if (format->second.empty() && json) {
      return fail(Errc::kInvalidArgument, "--format github and --json both write to stdout");
    }
    paths.push_back(format->second);
  }
  for (const auto& path : paths) {
    if (path.empty()) continue;
    if (auto possible = check_output({path, true, others}); !possible) return possible;
    others.push_back(path);
  }
  return {};
}

int CompareOutputs::write(report::ComparisonReport report,
                          const std::vector<std::string>& inputs) const {
  report.most_rows = top;
  int status = kDone;
  const auto to = [&](const std::string& path, const std::string& text) {
    const auto written = write_output({path, true, inputs}, text);
    if (!written) status = complain(written.error(), kCannotWrite);
  };
  auto options = text_options(STDOUT_FILENO);
  options.details = details || !options.height;
  std::string text =
      json ? report::comparison_to_json(report) : report::comparison_to_text(report, options);
  for (const auto& word : formats) {
    const auto format = parse_format(word);
    if (!format) continue;  // check() has said so
    if (format->second.empty()) {
      text += format->first->text(report);
    } else {
      to(format->second, format->first->text(report));
    }
  }
  to("", text);
  if (!html.empty()) {
    const auto page = report::comparison_to_html(report, {JOULEPROF_VERSION, "", redact});
    if (!page) return complain(page.error(), kInternalError);
    to(html, *page);
  }
  return status;
}

namespace fs = std::filesystem;
using Figures = std::vector<analysis::RunFigures>;
constexpr std::size_t kCurveSteps = 300;  // a page's width

class CompareVerb : public Verb {
 public:
  std::string_view name() const override { return "compare"; }

  void declare(CLI::App& app) override {
    add(app, "FILES", files_);
    add(app, "--before", before_);
    add(app, "--after", after_);
    add(app, "--baseline", baseline_);
    add(app, "--save-baseline", save_baseline_);
    auto* pairs = add(app, "--pairs", pairs_)->check(within(2, 1000));
    add(app, "--warmup", warm_ups_)->needs(pairs);
    add(app, "--keep", keep_)->needs(pairs);
    add(app, "--devices", devices_)->delimiter(',')->needs(pairs);
    add(app, "--by", by_);
    add(app, "--replay", replay_)->expected(0, 1)->default_str(kReplay)->needs(pairs);
    auto* per = add(app, "--per", per_);
    add(app, "--whole-machine", figure_options_.whole_machine)->excludes(per);
    auto* paired = add(app, "--paired", paired_);
    add(app, "--spread", spread_)->excludes(paired)->excludes(pairs);
    add(app, "--same-within", same_within_);
    add(app, "--accept", accepted_)->delimiter(',');
    auto* gate = add(app, "--fail-if", gates_)
                     ->expected(1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add(app, "--inconclusive", inconclusive_)->needs(gate)->check(one_of({"fail", "pass"}));
    add(app, "--self-test", self_test_)->needs(gate);
    costs_.declare(app);
    outputs_.declare(app);
    add(app, "--quiet", quiet_);
  }

  int run(const std::vector<std::string>& command) override {
    if (auto chosen = choose(); !chosen) return complain(chosen.error(), kUsageError);
    if (auto distinct = outputs_.check(inputs()); !distinct) {
      return complain(distinct.error(), kCannotWrite);
    }
    if (command.empty() && are_commands()) {
      if (pairs_ == 0) pairs_ = kUsualPairs;
      report_.options.paired = true;
      report_.before = files_[0];
      report_.after = files_[1];
      files_.clear();
      return compare_commands({"sh", "-c", report_.before, "---", "sh", "-c", report_.after});
    }
    if (pairs_ > 0) return compare_commands(command);
    if (!command.empty()) {
      return complain_of_usage(
          "commands need --pairs N: jouleprof compare --pairs 10 -- COMMAND BEFORE "
          "--- COMMAND AFTER");
    }
    return compare_files();
  }

 private:
  static constexpr unsigned kUsualPairs = 4;

  // Two words for a shell: they are no files, and do not look like any.
  bool are_commands() const {
    if (files_.size() != 2 || !baseline_.empty() || !save_baseline_.empty()) return false;
    return before_.empty() && after_.empty() &&
           std::ranges::none_of(files_, [](const std::string& word) {
             std::error_code ignored;
             return fs::exists(word, ignored) || word.find(".jprof") != std::string::npos;
           });
  }

  Result<void> choose() {
    const auto by = analysis::parse_compare_by(by_);
    if (!by) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--by {}: give total, window, phase, layer or kernel", by_));
    }
    report_.by = figure_options_.by = *by;
    report_.per = figure_options_.per = per_;
    report_.self_test = self_test_;
    if (!outputs_.html.empty()) figure_options_.curve_steps = kCurveSteps;
    if (!replay_.empty()) {
      if (by_ == "total" || by_ == "window") {
        return fail(Errc::kInvalidArgument, "--replay needs --by phase, layer or kernel");
      }
      const auto each = parse_replay(replay_);
      if (!each) return forward_error(each);
      replay_seconds_ = *each;
    }
    report_.options.paired = paired_ || pairs_ > 0;
    for (const auto& code : accepted_) {
      const auto is_in = [&](const auto& codes) {
        return std::ranges::find(codes, code) != codes.end();
      };
      if (is_in(analysis::kBlockingCodes) || is_in(analysis::kOtherCodes)) continue;
      return fail(Errc::kInvalidArgument,
                  fmt::format("--accept {}: give conditions that prevent a verdict: {}", code,
                              fmt::join(analysis::kBlockingCodes, ", ")));
    }
    report_.options.accepted = accepted_;
    if (!spread_.empty()) {
      const auto percent = parse_amount("--spread", spread_, "%", "2%");
      if (!percent) return forward_error(percent);
      if (*percent <= 0) return fail(Errc::kInvalidArgument, "--spread must be above 0");
      report_.options.spread = *percent / 100;
    }
    const auto within = parse_amount("--same-within", same_within_, "%", "1%");
    if (!within) return forward_error(within);
    if (*within < 0) return fail(Errc::kInvalidArgument, "--same-within must not be below 0");
    report_.options.same_within = *within / 100;
    auto costs = costs_.factors();
    if (!costs) return forward_error(costs);
    if (costs->series) {
      return fail(Errc::kInvalidArgument,
                  "--carbon of a comparison is a number: runs at different hours would differ by "
                  "the grid alone");
    }
    report_.costs = std::move(*costs);
    for (const auto& text : gates_) {
      auto gate = analysis::parse_gate(text);
      if (!gate) return forward_error(gate);
      report_.gates.push_back({std::move(*gate), {}});
    }
    return {};
  }

  // Sets the two sides of files. Errors: invalid_argument; as Baselines::find's.
  Result<void> choose_files() {
    if (!baseline_.empty()) {
      const auto baselines = Baselines::of_user();
      if (!baselines) return forward_error(baselines);
      auto found = baselines->find(baseline_);
      if (!found) return forward_error(found);
      for (const auto& path : found->recordings) before_.push_back(path.string());
      report_.before = fmt::format("baseline {} of commit {}",
                                   baseline_.substr(0, baseline_.find('@')), found->commit);
      after_.insert(after_.end(), files_.begin(), files_.end());
      files_.clear();
    }
    if (before_.empty() && after_.empty() && files_.size() == 2) {
      before_ = {files_[0]};
      after_ = {files_[1]};
      files_.clear();
    }
    if (before_.empty() || after_.empty() || !files_.empty()) {
      return fail(Errc::kInvalidArgument,
                  "say what to compare: jouleprof compare BEFORE AFTER, jouleprof compare --before "
                  "FILE... --after FILE..., or jouleprof compare --baseline NAME AFTER...\n"
                  "Try 'jouleprof compare --help'.");
    }
    for (const auto& file : after_) {
      std::error_code ignored;
      const bool twice = std::ranges::any_of(
          before_, [&](const auto& other) { return fs::equivalent(file, other, ignored); });
      if (twice) {
        return fail(Errc::kInvalidArgument, fmt::format("{} is on both sides", file));
      }
    }
    return {};
  }

  int compare_files() {
    const bool only_keeps = !save_baseline_.empty() && baseline_.empty() && before_.empty();
    if (only_keeps) {
      std::vector<std::string> kept = files_;
      kept.insert(kept.end(), after_.begin(), after_.end());
      return keep_baseline(kept);
    }
    if (auto chosen = choose_files(); !chosen) {
      const bool is_missing = chosen.error().code == Errc::kNotFound;
      return complain(chosen.error(), is_missing ? kCannotOpen : kUsageError);
    }
    auto before = read(before_);
    if (!before) return complain(before.error(), status_of_input(before.error()));
    auto after = read(after_);
    if (!after) return complain(after.error(), status_of_input(after.error()));
    if (auto distinct = check_distinct(*before, *after); !distinct) {
      return complain(distinct.error(), kUsageError);
    }
    if (const int status = conclude(*before, *after); status != kDone) return status;
    return save_baseline_.empty() ? kDone : keep_baseline(after_);
  }

  // A copy of a recording is no run of its own: it would show less spread than there is.
  static Result<void> check_distinct(const Figures& before, const Figures& after) {
    using Identity = std::tuple<std::string, std::string, RealTime, Duration, double>;
    std::map<Identity, std::string> known;
    for (const Figures* side : {&before, &after}) {
      for (const auto& run : *side) {
        if (!run.started) continue;
        // Logs of several machines may begin and end together.
        const double joules = run.host.empty() ? run.energy.value.value_or(0) : 0;
        const auto [other, is_new] =
            known.try_emplace({run.host, run.boot_id, *run.started, run.length, joules}, run.name);
        if (is_new) continue;
        return fail(Errc::kInvalidArgument,
                    fmt::format("{} and {} are the same recording; leave out one", other->second,
                                run.name));
      }
    }
    return {};
  }

  // Copies recordings that can be read.
  int keep_baseline(const std::vector<std::string>& files) {
    if (files.empty()) {
      return complain_of_usage("--save-baseline needs recordings");
    }
    std::vector<fs::path> paths;
    for (const auto& file : files) {
      if (const auto runs = read({file}); !runs) {
        return complain(runs.error(), status_of_input(runs.error()));
      }
      paths.emplace_back(file);
    }
    const auto baselines = Baselines::of_user();
    if (!baselines) return complain(baselines.error(), kCannotOpen);
    const std::string commit = current_commit();
    if (const auto saved = baselines->save(save_baseline_, commit, paths); !saved) {
      const bool is_usage = saved.error().code == Errc::kInvalidArgument;
      return complain(saved.error(), is_usage ? kUsageError : kCannotWrite);
    }
    if (!quiet_) {
      say("baseline   {} of commit {}: {} added\n", save_baseline_, commit,
          counted(paths.size(), "recording"));
    }
    return kDone;
  }

  Result<Figures> read(const std::vector<std::string>& files) const {
    Figures figures;
    const auto add = [&](model::Recording recording, const std::string& name) -> Result<void> {
      auto made = analysis::figures_of(analysis::Run(std::move(recording)), name, figure_options_);
      if (!made) return forward_error(made);
      figures.push_back(std::move(*made));
      return {};
    };
    for (const auto& file : files) {
      if (recording::is_merged_file(file)) {
        if (auto added = add_runs(file, add, figures); !added) return forward_error(added);
        continue;
      }
      auto recording = recording::read_recording(file);
      if (!recording) return forward_error(recording);
      if (auto added = add(std::move(*recording), file); !added) return forward_error(added);
    }
    return figures;
  }

  // Of a file of `run --repeat` or `--append`: each of its recordings is a run of its own. Ranks of
  // a job, which ran at the same time, are not. Errors: invalid_argument for them.
  static Result<void> add_runs(
      const std::string& file,
      const std::function<Result<void>(model::Recording, const std::string&)>& add,
      Figures& figures) {
    const std::size_t first = figures.size();
    auto added = recording::read_merged(file, [&](recording::OfOneHost recordings) -> Result<void> {
      for (auto& [part, recording] : recordings) {
        if (auto one = add(std::move(recording), part.name); !one) return one;
      }
      return {};
    });
    if (!added) return added;
    for (std::size_t i = first; i < figures.size(); ++i) {
      for (std::size_t k = first; k < i; ++k) {
        const auto& a = figures[i];
        const auto& b = figures[k];
        if (!a.started || !b.started) continue;
        if (*a.started >= *b.started + b.length || *b.started >= *a.started + a.length) continue;
        return fail(Errc::kInvalidArgument,
                    fmt::format("{0}: {1} and {2} ran at the same time, as ranks of a job do, so "
                                "they are not runs of one program one after another; compare the "
                                "recording of one rank before with that of one rank after",
                                file, b.name, a.name));
      }
    }
    return {};
  }

  int compare_commands(const std::vector<std::string>& words) {
    if (!files_.empty() || !before_.empty() || !after_.empty() || !baseline_.empty() ||
        !save_baseline_.empty()) {
      return complain_of_usage("--pairs compares two commands; leave out files and baselines");
    }
    auto commands = split_commands(words);
    if (!commands) return complain(commands.error(), kUsageError);
    PairPlan plan{commands->first, commands->second, pairs_, warm_ups_,
                  devices_,        figure_options_,  {},     keep_};
    plan.replay_seconds = replay_seconds_;
    int status = kDone;
    const auto runs = run_pairs(
        plan,
        [&](const std::string& line) {
          if (!quiet_) say("{}\n", line);
        },
        status);
    if (!runs) {
      const bool is_usage = runs.error().code == Errc::kInvalidArgument;
      return complain(runs.error(), status != kDone ? status
                                    : is_usage      ? kUsageError
                                                    : kNothingToMeasure);
    }
    if (!quiet_) say("\n");
    if (report_.before.empty()) {
      report_.before = fmt::format("{}", fmt::join(plan.before, " "));
      report_.after = fmt::format("{}", fmt::join(plan.after, " "));
    }
    const int concluded = conclude(runs->before, runs->after);
    if (!runs->ended) return concluded;
    Error ended = *runs->ended;
    ended.message += fmt::format("; the {} pairs before it are compared", runs->before.size());
    return complain(ended, status != kDone ? status : kNothingToMeasure);
  }

  static std::vector<report::ComparedRun> drawn(const Figures& side) {
    std::vector<report::ComparedRun> runs;
    for (const auto& run : side) {
      runs.push_back({run.name, run.energy.value, run.time.value, run.curves});
    }
    return runs;
  }

  int conclude(const Figures& before, const Figures& after) {
    auto comparison = analysis::compare(before, after, report_.options);
    if (!comparison) return complain(comparison.error(), kUsageError);
    report_.comparison = std::move(*comparison);
    report_.before_runs = drawn(before);
    report_.after_runs = drawn(after);
    int status = kDone;
    for (auto& judged : report_.gates) {
      judged.outcome = analysis::judge(judged.gate, report_.comparison, self_test_);
      if (judged.outcome == analysis::GateOutcome::kFailed) status = kGateFailed;
      const bool open = judged.outcome == analysis::GateOutcome::kInconclusive;
      if (open && status == kDone && inconclusive_ == "fail") status = kInconclusive;
    }
    const int written = outputs_.write(report_, inputs());
    return written != kDone ? written : status;
  }

  // What an output may not be.
  std::vector<std::string> inputs() const {
    std::vector<std::string> all = files_;
    all.insert(all.end(), before_.begin(), before_.end());
    all.insert(all.end(), after_.begin(), after_.end());
    all.push_back(costs_.carbon);
    return all;
  }

  std::vector<std::string> files_;
  std::vector<std::string> before_;
  std::vector<std::string> after_;
  std::string baseline_;
  std::string save_baseline_;
  unsigned pairs_ = 0;
  unsigned warm_ups_ = 1;
  std::string keep_;
  std::vector<std::string> devices_;
  std::string replay_;  // empty: not asked for
  std::optional<double> replay_seconds_;
  std::string by_ = "total";
  std::string per_;
  bool paired_ = false;
  std::string spread_;
  std::string same_within_ = "1%";
  std::vector<std::string> accepted_;
  std::vector<std::string> gates_;
  std::string inconclusive_ = "fail";
  bool self_test_ = false;
  CostChoice costs_;
  CompareOutputs outputs_;
  bool quiet_ = false;
  analysis::FigureOptions figure_options_;
  report::ComparisonReport report_;
};

}  // namespace

std::unique_ptr<Verb> make_compare() { return std::make_unique<CompareVerb>(); }

}  // namespace jouleprof::cli
