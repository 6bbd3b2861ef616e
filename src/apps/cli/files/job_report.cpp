#include "apps/cli/files/job_report.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

#include "apps/cli/files/slurm_accounting.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/terminal/terminal.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/results/pages.h"

namespace jouleprof::cli {
namespace {

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

}  // namespace

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

}  // namespace jouleprof::cli
