#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/text.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/html/page.h"
#include "report/results/job.h"
#include "report/svg/svg_format.h"

namespace jouleprof::cli {
namespace {

// What the report of a job (of recordings and merged files) is, and where it goes.
struct JobOutput {
  Output page;          // an empty path: to stdout
  bool redact = false;  // without names of hosts and files
  bool json = false;
  bool with_slurm = false;  // asks Slurm's accounting for its energies of the jobs
  bool strict = false;      // a warning is a failure
  report::TextOptions text;
};

// What can be shown, and how.
enum View : unsigned {
  kSummary = 1,
  kRows = 2,  // kernels, layers, ranges, phases
  kWindows = 4,
  kCollectives = 8,
  kHosts = 16,
  kJobs = 32,     // --by job
  kServing = 64,  // --by request and tenant
  kOneRecording = kSummary | kRows | kWindows | kCollectives | kServing,
  kSeveral = kHosts | kJobs,
};
// The words of --by, in addition to those of kRows (report::activity_dimensions()).
constexpr std::pair<std::string_view, View> kBy[]{
    {"window", kWindows},  {"collective", kCollectives},
    {"request", kServing}, {"tenant", kServing},
    {"host", kHosts},      {"rank", kHosts},
    {"job", kJobs}};

std::vector<std::string> words_of_by() {
  std::vector<std::string> words;
  for (const auto& dimension : report::activity_dimensions()) words.emplace_back(dimension.word);
  for (const auto& [word, view] : kBy) words.emplace_back(word);
  return words;
}

View view_of(std::string_view by) {
  for (const auto& [word, view] : kBy) {
    if (word == by) return view;
  }
  return by.empty() ? kSummary : kRows;
}
enum As : unsigned { kText = 1, kJson = 2, kCsv = 4, kPage = 8, kFigure = 16, kAny = 31 };

// What an option is of; one that is in no row is of everything.
struct Allowed {
  std::string_view option;
  unsigned views;
  unsigned as;
  std::string_view of;  // empty: --by with the words of `views`
};
constexpr std::size_t kUsualTop = 20;
constexpr int kWide = 100'000;  // columns: more than any name has
constexpr std::string_view kOneText = "one recording and not of a job of several";
constexpr std::string_view kSummaryText = "the summary as text and JSON, and of a job";
constexpr std::string_view kFileText = "--html, --svg and --png";
constexpr Allowed kAllowed[]{
    {"--csv", kSummary | kRows | kWindows | kServing, kAny,
     "one recording, and not of --by collective, host, rank or job"},
    {"--html", kSummary | kSeveral, kAny,
     "the summary and of a job, and a page has the tables of every --by"},
    {"--svg", kSummary, kAny, "the summary of one recording"},
    {"--png", kSummary, kAny, "the summary of one recording"},
    {"--redact", kSummary | kSeveral, kPage | kFigure, kFileText},
    {"--force", kSummary | kSeveral, kPage | kFigure, kFileText},
    {"--wall", kSummary, kText | kJson, kSummaryText},
    {"--wall", kSeveral, kAny, kSummaryText},
    {"--price", kSummary | kSeveral, kAny & ~kCsv, "the summary, but of no CSV, and of a job"},
    {"--carbon", kSummary | kSeveral, kAny & ~kCsv, "the summary, but of no CSV, and of a job"},
    {"--pue", kSummary | kSeveral, kAny & ~kCsv, "the summary, but of no CSV, and of a job"},
    {"--per", kSummary, kText | kJson, "the summary of one recording as text and JSON"},
    {"--whole-machine", kSummary | kSeveral, kAny & ~kCsv,
     "the summary, but of no CSV, and of a job"},
    {"--fold", kRows, kAny, "--by layer"},
    {"--sort", kRows, kAny, ""},
    {"--top", kRows | kServing, kAny, ""},
    {"--depth", kRows, kAny, ""},
    {"--from", kOneRecording, kAny, kOneText},
    {"--to", kOneRecording, kAny, kOneText},
    {"--run", kOneRecording, kAny, kOneText},
    {"--rest-share", kSeveral, kAny, ""},
    {"--sacct", kJobs, kAny, ""},
    {"--strict", kSeveral, kAny, ""},
};

// "--by host, rank and job"
std::string by_text(unsigned views) {
  auto words = words_of_by();
  std::erase_if(words, [&](const auto& word) { return (view_of(word) & views) == 0; });
  const std::string last = words.back();
  words.pop_back();
  return "--by " + (words.empty() ? last : fmt::format("{} and {}", fmt::join(words, ", "), last));
}

// Errors: invalid_argument where an option was given that is of something else.
Result<void> check_options(const std::vector<std::string_view>& given, unsigned view, unsigned as) {
  for (const auto& [option, views, forms, of] : kAllowed) {
    const auto fits = [&, name = option](const Allowed& row) {
      return row.option == name && (row.views & view) != 0 && (as & ~row.as) == 0;
    };
    if (std::ranges::find(given, option) == given.end() || std::ranges::any_of(kAllowed, fits)) {
      continue;
    }
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is of {}: leave it out", option, of.empty() ? by_text(views) : of));
  }
  return {};
}

// The options of --by.
struct ByChoice {
  std::string by;  // empty: not asked for
  std::string sort;
  std::optional<std::size_t> top;
  std::optional<std::size_t> depth;
  bool no_fold = false;
  bool fold = false;

  void declare(CLI::App& app) {
    auto* asked = add(app, "--by", by)->check(one_of(words_of_by()));
    add(app, "--sort", sort)->needs(asked)->check(one_of(report::activity_sort_words()));
    add(app, "--top", top)->needs(asked);
    auto* folded = add(app, "--fold", fold)->needs(asked);
    add(app, "--no-fold", no_fold)->needs(asked)->excludes(folded);
    add(app, "--depth", depth)->needs(asked)->check(above_zero());
  }

  // Of kRows. `all`: rows are not limited where the user did not say how many.
  // Errors: invalid_argument.
  Result<report::ActivityOptions> rows(bool all) const {
    report::ActivityOptions options;
    options.by = report::parse_activity_by(by).value_or(report::ActivityBy::kKernel);
    options.sort = report::parse_activity_sort(sort);
    options.top = top;
    if (!top && !all) options.top = kUsualTop;
    options.depth = depth;
    options.fold = fold;
    options.fold_many = !all && !no_fold && options.by == report::ActivityBy::kLayer;
    if (fold && options.by != report::ActivityBy::kLayer) {
      return fail(Errc::kInvalidArgument, "--fold is of --by layer");
    }
    return options;
  }
};

constexpr std::int64_t kMostJoules = 1'000'000'000'000;  // Slurm prints ~0 where it has none

// Slurm's own numbers of jobs: "17", "17_3" of an array, "17+1" of a heterogeneous job.
bool is_job(std::string_view job) {
  return !job.empty() && job.find_first_not_of("0123456789_+") == std::string_view::npos;
}

// From lines of JobID|ConsumedEnergyRaw: that of the job, else the sum of its numbered steps, which
// are apart from each other. Steps `batch` and `extern` have their time once more.
report::SlurmEnergy slurm_energy_of(const std::string& job, std::string_view lines) {
  std::int64_t of_job = 0;
  std::int64_t of_steps = 0;
  bool any = false;
  for (const auto line : split(lines, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() < 2) continue;
    const auto id = trim(cells[0]);
    const auto joules = parse_integer(trim(cells[1]));
    if (id != job && !id.starts_with(job + ".")) continue;
    any = true;
    if (!joules || *joules < 0 || *joules > kMostJoules) continue;
    if (id == job) {
      of_job = *joules;
    } else if (parse_integer(id.substr(job.size() + 1))) {
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
  std::ranges::copy_if(jobs, std::back_inserter(known), is_job);
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

// The file into which they are merged, in `folder`.
Result<std::string> merge_into(const Result<TemporaryFolder>& folder,
                               const std::vector<std::string>& files) {
  if (!folder) return forward_error(folder);
  const auto path = folder->path() / "merged.jprof";
  const auto merged = recording::merge_recordings({files.begin(), files.end()}, path, false);
  if (!merged) return forward_error(merged);
  return path.string();
}

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

// Returns the exit status.
int report_job(const std::vector<std::string>& files, report::JobOptions options,
               const JobOutput& wanted) {
  const Output& html = wanted.page;
  if (!html.path.empty()) {
    if (const auto possible = check_output(html); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
  }
  const auto folder = TemporaryFolder::create();
  const auto file =
      files.size() > 1 ? merge_into(folder, files) : Result<std::string>(files.front());
  if (!file) return complain(file.error(), status_of_input(file.error()));
  const auto job = read_job(*file, options.rules);
  if (!job) return complain(job.error(), status_of_input(job.error()));
  const int done = wanted.strict && !job->warnings.empty() ? kGateFailed : kDone;
  if (wanted.with_slurm) {
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
    return made ? done : complain(made.error(), kCannotWrite);
  }
  const auto text = wanted.json ? report::job_to_json(*job, options)
                                : report::job_to_text(*job, options, wanted.text);
  if (!text) return complain(text.error(), status_of_input(text.error()));
  const auto written = write_output(Output{}, *text);
  return written ? done : complain(written.error(), kCannotWrite);
}

class ReportVerb : public Verb {
 public:
  std::string_view name() const override { return "report"; }

  void declare(CLI::App& app) override {
    app.final_callback([this, &app] {
      for (const auto& row : kAllowed) {
        if (app.count(std::string(row.option)) > 0) given_.push_back(row.option);
      }
    });
    input_.declare(app);
    auto* json = add(app, "--json", json_);
    auto* csv = add(app, "--csv", csv_)->excludes(json);
    auto* html = add(app, "--html", html_)->excludes(json)->excludes(csv);
    add(app, "--svg", svg_)->excludes(json)->excludes(csv);
    add(app, "--png", png_)->excludes(json)->excludes(csv);
    add(app, "--open", open_)->needs(html);
    add(app, "--redact", redact_);
    add(app, "--force", force_);
    choice_.declare(app);
    costs_.declare(app);
    wall_.declare(app);
    add(app, "MORE", more_);
    add(app, "--rest-share", rest_share_)->check(within(0, 1));
    add(app, "--sacct", sacct_);
    add(app, "--strict", strict_);
    add(app, "--per", per_);
    add(app, "--whole-machine", whole_machine_);
    add(app, "--details", details_);
    add(app, "--wide", wide_);
  }

  int run(const std::vector<std::string>&) override {
    auto costs = costs_.factors();
    if (!costs) return complain(costs.error(), status_of_input(costs.error()));
    const auto of_job = report::parse_job_by(choice_.by);
    const bool is_of_job =
        of_job || !more_.empty() || (input_.run == 0 && recording::is_merged_file(input_.file));
    if (const auto fits = check_options(given_, view_shown(is_of_job), form()); !fits) {
      return complain(fits.error(), kUsageError);
    }
    if (is_of_job) {
      auto walls = wall_.of_job();
      if (!walls) return complain(walls.error(), status_of_input(walls.error()));
      return run_job({of_job.value_or(report::JobBy::kHost),
                      std::move(*costs),
                      {rest_share_},
                      std::move(*walls),
                      {},
                      whole_machine_});
    }
    report::FormatOptions options;
    options.text = text_form();
    options.text.whole_machine = whole_machine_;
    options.text.details = details_;
    options.version = JOULEPROF_VERSION;
    const View view = view_of(choice_.by);
    options.collectives = view == kCollectives;
    options.windows = view == kWindows;
    if (view == kServing) {
      options.serving =
          report::ServingOptions{choice_.by == "tenant", choice_.top.value_or(kUsualTop)};
    }
    if (view == kRows) {
      auto by = choice_.rows(json_ || csv_);
      if (!by) return complain(by.error(), kUsageError);
      options.by = std::move(*by);
    }
    auto wall = wall_.of_run();
    if (!wall) return complain(wall.error(), status_of_input(wall.error()));
    options.wall = std::move(*wall);
    options.costs = std::move(*costs);
    if (!per_.empty()) {
      auto per = report::parse_unit_count(per_);
      if (!per) return complain(per.error(), kUsageError);
      options.per = std::move(*per);
    }
    if (!png_.empty()) {
      if (const auto possible = report::check_png(); !possible) {
        return complain(possible.error(), kCannotWrite);
      }
    }
    const auto run = input_.open();
    if (!run) return complain(run.error(), status_of_input(run.error()));
    if ((form() & (kPage | kFigure)) != 0) return write_files(*run, options);
    const auto* format = report::find_format(json_ ? "json" : csv_ ? "domains" : "text");
    return write_run(*run, input_, *format, options, Output{});
  }

 private:
  report::TextOptions text_form() const {
    auto form = text_options(STDOUT_FILENO);
    if (wide_) form.width = kWide;
    return form;
  }

  unsigned view_shown(bool is_of_job) const {
    const View view = view_of(choice_.by);
    return is_of_job && view != kJobs ? kHosts : view;
  }
  unsigned form() const {
    const unsigned files =
        (html_.empty() ? 0U : kPage) | (svg_.empty() && png_.empty() ? 0U : kFigure);
    return files != 0 ? files : json_ ? kJson : csv_ ? kCsv : kText;
  }

  int run_job(const report::JobOptions& options) const {
    const bool is_table = !choice_.by.empty() && !report::parse_job_by(choice_.by);
    if (is_table || options.costs.series) {
      return complain_of_usage(
          fmt::format("{} is of {}: give one recording (of a merged file: --run N), or {}",
                      is_table ? "--by " + choice_.by : "--carbon FILE", kOneText,
                      is_table ? "--by host, rank or job" : "a number with --carbon"));
    }
    std::vector<std::string> files{input_.file};
    files.insert(files.end(), more_.begin(), more_.end());
    const int status = report_job(
        files, options, {{html_, force_, files}, redact_, json_, sacct_, strict_, text_form()});
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
  ByChoice choice_;
  CostChoice costs_;
  WallChoice wall_;
  std::vector<std::string> more_;  // files
  std::optional<double> rest_share_;
  bool sacct_ = false;
  bool strict_ = false;
  std::string per_;
  bool whole_machine_ = false;  // what is quoted
  bool details_ = false;
  bool wide_ = false;
  bool json_ = false;
  bool csv_ = false;
  std::string html_;
  std::string svg_;
  std::string png_;
  bool open_ = false;
  bool redact_ = false;
  bool force_ = false;
  std::vector<std::string_view>
      given_;  // of kAllowed, on the command line: a setting is no request
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace jouleprof::cli
