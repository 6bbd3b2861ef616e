#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "apps/cli/files/activity_choice.h"
#include "apps/cli/files/job_report.h"
#include "apps/cli/options/cost_choice.h"
#include "apps/cli/options/input.h"
#include "apps/cli/options/wall_choice.h"
#include "apps/cli/terminal/browser.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/terminal/terminal.h"
#include "apps/cli/verb.h"
#include "recording/merge/merged_file.h"
#include "report/svg/png.h"

namespace jouleprof::cli {
namespace {

class ReportVerb : public Verb {
 public:
  std::string_view name() const override { return "report"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    auto* json = app.add_flag("--json", json_, "");
    auto* csv = app.add_flag("--csv", csv_, "")->excludes(json);
    auto* html = app.add_option("--html", html_, "")->excludes(json)->excludes(csv);
    app.add_option("--svg", svg_, "")->excludes(json)->excludes(csv);
    app.add_option("--png", png_, "")->excludes(json)->excludes(csv);
    app.add_flag("--open", open_, "")->needs(html);
    app.add_flag("--redact", redact_, "");
    app.add_flag("-f,--force", force_, "");
    choice_.declare(app);
    costs_.declare(app);
    wall_.declare(app);
    app.add_option("MORE", more_, "");
    app.add_option("--rest-share", rest_share_, "")->check(CLI::Range(0.0, 1.0));
    app.add_flag("--sacct", sacct_, "");
    app.add_option("--per", per_, "");
    app.add_flag("--whole-machine", whole_machine_, "");
    app.add_flag("--details", details_, "");
  }

  int run(const std::vector<std::string>&) override {
    auto costs = costs_.factors();
    if (!costs) return complain(costs.error(), status_of_input(costs.error()));
    const auto of_job = report::parse_job_by(choice_.by);
    if (of_job || !more_.empty() || (input_.run == 0 && recording::is_merged_file(input_.file))) {
      auto walls = wall_.of_job();
      if (!walls) return complain(walls.error(), status_of_input(walls.error()));
      return run_job({of_job.value_or(report::JobBy::kHost),
                      std::move(*costs),
                      {rest_share_},
                      std::move(*walls),
                      {},
                      whole_machine_});
    }
    if (rest_share_ || sacct_) {
      return complain({Errc::kInvalidArgument,
                       std::string(sacct_ ? "--sacct" : "--rest-share") + " is of --by job"},
                      kUsageError);
    }
    report::FormatOptions options;
    options.text = text_options(STDOUT_FILENO);
    options.text.whole_machine = whole_machine_;
    options.text.details = details_;
    options.version = JOULEPROF_VERSION;
    options.collectives = choice_.by == "collective";
    options.windows = choice_.by == "window";
    if (options.collectives || options.windows) {
      if (const auto refused = refused_with(options.collectives); !refused.empty()) {
        return complain({Errc::kInvalidArgument,
                         fmt::format("{} is not of --by {}: leave it out", refused, choice_.by)},
                        kUsageError);
      }
    } else if (!choice_.by.empty()) {
      auto by = choice_.options(json_ || csv_);
      if (!by) return complain(by.error(), kUsageError);
      options.by = std::move(*by);
    }
    auto wall = wall_.of_run();
    if (!wall) return complain(wall.error(), status_of_input(wall.error()));
    if (*wall && (csv_ || !html_.empty() || !choice_.by.empty())) {
      return complain({Errc::kInvalidArgument,
                       "--wall is of the summary as text and JSON: leave out --by, --csv and "
                       "--html"},
                      kUsageError);
    }
    options.wall = std::move(*wall);
    if (costs->any() && (csv_ || !choice_.by.empty())) {
      return complain({Errc::kInvalidArgument,
                       "--price and --carbon are of the summary: leave out --by and --csv"},
                      kUsageError);
    }
    options.costs = std::move(*costs);
    const bool has_files = !html_.empty() || !svg_.empty() || !png_.empty();
    if (!per_.empty()) {
      if (csv_ || has_files || !choice_.by.empty()) {
        return complain({Errc::kInvalidArgument,
                         "--per is of the summary as text and JSON: leave out --by, --csv, --html, "
                         "--svg and --png"},
                        kUsageError);
      }
      auto per = report::parse_unit_count(per_);
      if (!per) return complain(per.error(), kUsageError);
      options.per = std::move(*per);
    }
    if (has_files && !choice_.by.empty()) {
      return complain({Errc::kInvalidArgument,
                       "a page has the tables of every --by, and a figure has none; leave out "
                       "--by, --sort, --top and --depth"},
                      kUsageError);
    }
    if (!has_files && (redact_ || force_)) {
      return complain({Errc::kInvalidArgument, fmt::format("{} is of --html, --svg and --png",
                                                           redact_ ? "--redact" : "--force")},
                      kUsageError);
    }
    if (!png_.empty()) {
      if (const auto possible = report::check_png(); !possible) {
        return complain(possible.error(), kCannotWrite);
      }
    }
    const auto run = input_.open();
    if (!run) return complain(run.error(), status_of_input(run.error()));
    if (has_files) return write_files(*run, options);
    const auto* format = report::find_format(json_ ? "json" : csv_ ? "domains" : "text");
    return write_run(*run, input_, *format, options, Output{});
  }

 private:
  // Options that the tables of collectives and windows do not have.
  std::string refused_with(bool collectives) const {
    if (csv_ && collectives) return "--csv";
    if (choice_.fold) return "--fold";
    if (!choice_.sort.empty()) return "--sort";
    if (choice_.top) return "--top";
    return choice_.depth ? "--depth" : "";
  }

  int run_job(const report::JobOptions& options) const {
    const bool is_table = !choice_.by.empty() && !report::parse_job_by(choice_.by);
    std::string refused;
    if (sacct_ && choice_.by != "job") {
      return complain({Errc::kInvalidArgument, "--sacct is of --by job"}, kUsageError);
    }
    if (is_table) refused = "--by " + choice_.by;
    if (csv_) refused = "--csv";
    if (!svg_.empty() || !png_.empty()) refused = "--svg and --png";
    if (!choice_.sort.empty() || choice_.top || choice_.depth)
      refused = "--sort, --top and --depth";
    if (!input_.from.empty() || !input_.to.empty() || input_.run > 0)
      refused = "--from, --to, --run";
    if (options.costs.series) refused = "--carbon FILE";
    if (!per_.empty()) refused = "--per";
    if (redact_ && html_.empty()) {
      return complain({Errc::kInvalidArgument, "--redact is of --html"}, kUsageError);
    }
    if (!refused.empty()) {
      return complain(
          {Errc::kInvalidArgument,
           refused + " is of one recording and not of a job of several: give --by host, "
                     "rank or job, and a number with --carbon"},
          kUsageError);
    }
    std::vector<std::string> files{input_.file};
    files.insert(files.end(), more_.begin(), more_.end());
    const int status = report_job(files, options, json_, sacct_, {{html_, force_, files}, redact_});
    if (status != kDone || !open_) return status;
    const auto opened = open_in_browser(html_);
    return opened ? kDone : complain(opened.error(), kDone);
  }

  // None may replace the recording or another of them.
  int write_files(const analysis::Run& run, report::FormatOptions options) const {
    options.redact = redact_;
    options.text.recording_path = redact_ ? "" : std::filesystem::path(input_.file).filename();
    std::vector<std::string> others{input_.file, costs_.carbon};
    const std::array<std::pair<const char*, std::string>, 3> files{
        {{"html", html_}, {"svg", svg_}, {"png", png_}}};
    for (const auto& [format, path] : files) {
      if (path.empty()) continue;
      const int status =
          write_run(run, input_, *report::find_format(format), options, {path, force_, others});
      if (status != kDone) return status;
      others.push_back(path);
    }
    if (!open_) return kDone;
    const auto opened = open_in_browser(html_);
    return opened ? kDone : complain(opened.error(), kDone);
  }

  Input input_;
  ActivityChoice choice_;
  CostChoice costs_;
  WallChoice wall_;
  std::vector<std::string> more_;  // files
  std::optional<double> rest_share_;
  bool sacct_ = false;
  std::string per_;
  bool whole_machine_ = false;  // what is quoted
  bool details_ = false;
  bool json_ = false;
  bool csv_ = false;
  std::string html_;
  std::string svg_;
  std::string png_;
  bool open_ = false;
  bool redact_ = false;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace jouleprof::cli
