#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/files/activity_choice.h"
#include "apps/cli/options/cost_choice.h"
#include "apps/cli/options/input.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/terminal/terminal.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/text.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/results/job.h"
#include "report/results/pages.h"
#include "report/svg/png.h"

namespace jouleprof::cli {
namespace {

// The report of a job: of recordings and merged files.

struct JobPage {
  Output file;          // an empty path: none
  bool redact = false;  // without names of hosts and files
};

// `with_slurm`: asks Slurm's accounting for its energies of the jobs.
// Writes a page to `page.file`, or else to stdout. Returns the exit status.
int report_job(const std::vector<std::string>& files, report::JobOptions options, bool json,
               bool with_slurm, const JobPage& page);

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

namespace {

// The energy that Slurm's accounting has for jobs, as `sacct` prints it.

constexpr std::uint64_t kMostJoules = 1'000'000'000'000;  // Slurm prints ~0 where it has none

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = error == std::errc{} && end == text.data() + text.size();
  return is_all && !text.empty() ? std::optional(value) : std::nullopt;
}

// Slurm's own numbers of jobs: "17", "17_3" of an array, "17+1" of a heterogeneous job.
bool is_job(std::string_view job) {
  return !job.empty() && job.find_first_not_of("0123456789_+") == std::string_view::npos;
}

// From lines of JobID|ConsumedEnergyRaw: that of the job, else the sum of its numbered steps, which
// are apart from each other. Steps `batch` and `extern` have their time once more.
report::SlurmEnergy slurm_energy_of(const std::string& job, std::string_view lines) {
  std::uint64_t of_job = 0;
  std::uint64_t of_steps = 0;
  bool any = false;
  for (const auto line : split(lines, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() < 2) continue;
    const auto id = trim(cells[0]);
    const auto joules = whole_number(trim(cells[1]));
    if (id != job && !id.starts_with(job + ".")) continue;
    any = true;
    if (!joules || *joules > kMostJoules) continue;
    if (id == job) {
      of_job = *joules;
    } else if (whole_number(id.substr(job.size() + 1))) {
      of_steps += *joules;
    }
  }
  const auto joules = static_cast<double>(of_job > 0 ? of_job : of_steps);
  if (joules > 0) return {job, Energy::joules(joules), ""};
  return {job, std::nullopt,
          any ? "Slurm recorded no energy: the site has no AcctGatherEnergyType, or the job runs on"
              : "sacct does not list the job"};
}

// Starts `sacct`. One figure for each of `jobs`, in their order. Absent with the reason where sacct
// fails or has none.
std::vector<report::SlurmEnergy> slurm_energies(const std::vector<std::string>& jobs) {
  std::vector<std::string> known;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(known), is_job);
  std::string lines;
  bool ran = known.empty();
  if (!known.empty()) {
    const auto command = fmt::format(
        "sacct --noheader --parsable2 --format=JobID,ConsumedEnergyRaw --jobs={} 2>/dev/null",
        fmt::join(known, ","));
    FILE* sacct = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    std::size_t read = 0;
    while (sacct != nullptr && (read = std::fread(buffer.data(), 1, buffer.size(), sacct)) > 0) {
      lines.append(buffer.data(), read);
    }
    ran = sacct != nullptr && ::pclose(sacct) == 0;
  }
  std::vector<report::SlurmEnergy> found;
  for (const auto& job : jobs) {
    if (!is_job(job)) {
      found.push_back({job, std::nullopt, "not a job of Slurm"});
    } else if (!ran) {
      found.push_back({job, std::nullopt,
                       "sacct is missing or failed; run this where it reaches Slurm's accounting"});
    } else {
      found.push_back(slurm_energy_of(job, lines));
    }
  }
  return found;
}

// A file to merge into; its folder is removed again.
class MergedInputs {
 public:
  MergedInputs() {
    std::error_code err;
    folder_ = (std::filesystem::temp_directory_path(err) / "jouleprof-XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  MergedInputs(const MergedInputs&) = delete;
  MergedInputs& operator=(const MergedInputs&) = delete;
  ~MergedInputs() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Result<std::string> merge(const std::vector<std::string>& files) const {
    if (folder_.empty()) {
      return fail(Errc::kUnavailable,
                  "no temporary folder can be made; set TMPDIR to one that can be written");
    }
    const auto path = std::filesystem::path(folder_) / "merged.jprof";
    const auto merged = recording::merge_recordings({files.begin(), files.end()}, path, false);
    if (!merged) return forward_error(merged);
    return path.string();
  }

 private:
  std::string folder_;
};

Result<analysis::Job> read_job(const std::string& file, const analysis::JobRules& rules) {
  analysis::JobBuilder builder(rules);
  const auto add = [&](recording::OfOneHost recordings) {
    std::vector<analysis::JobBuilder::Named> named;
    for (auto& [part, recording] : recordings) {
      named.push_back({part.name, analysis::Run(std::move(recording))});
    }
    return builder.add_host(named);
  };
  Result<void> added;
  if (recording::is_merged_file(file)) {
    added = recording::read_merged(file, add);
  } else {
    auto recording = recording::read_recording(file);
    if (!recording) return forward_error(recording);
    recording::OfOneHost one;
    one.push_back(
        {{std::filesystem::path(file).filename().string(), "", ""}, std::move(*recording)});
    added = add(std::move(one));
  }
  if (!added) return forward_error(added);
  return std::move(builder).finish();
}

int report_job(const std::vector<std::string>& files, report::JobOptions options, bool json,
               bool with_slurm, const JobPage& wanted) {
  const Output& html = wanted.file;
  if (!html.path.empty()) {
    if (const auto possible = check_output(html); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
  }
  const MergedInputs several;
  const auto file = files.size() > 1 ? several.merge(files) : Result<std::string>(files.front());
  if (!file) return complain(file.error(), status_of_input(file.error()));
  const auto job = read_job(*file, options.rules);
  if (!job) return complain(job.error(), status_of_input(job.error()));
  if (with_slurm) {
    std::vector<std::string> jobs;
    for (const auto& share : job->shares) {
      if (!share.job.empty()) jobs.push_back(share.job);
    }
    options.slurm = slurm_energies(jobs);
  }
  if (!html.path.empty()) {
    const std::string name = std::filesystem::path(files.front()).filename();
    const auto page = report::job_to_html(
        *job, options,
        {JOULEPROF_VERSION, "jouleprof report " + report::shell_word(name), wanted.redact});
    if (!page) return complain(page.error(), kInternalError);
    const auto made = write_output(html, *page);
    return made ? kDone : complain(made.error(), kCannotWrite);
  }
  const auto text = json ? report::job_to_json(*job, options)
                         : report::job_to_text(*job, options, text_options(STDOUT_FILENO));
  if (!text) return complain(text.error(), status_of_input(text.error()));
  const auto written = write_output(Output{}, *text);
  return written ? kDone : complain(written.error(), kCannotWrite);
}

}  // namespace

}  // namespace jouleprof::cli
