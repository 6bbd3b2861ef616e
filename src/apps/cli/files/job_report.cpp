#include "apps/cli/files/job_report.h"

#include <filesystem>
#include <utility>

#include "apps/cli/exit_status.h"
#include "apps/cli/output.h"
#include "apps/cli/terminal.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "report/cells.h"
#include "report/pages.h"

namespace jouleprof::cli {
namespace {

Result<analysis::Job> read_job(const std::string& file) {
  analysis::JobBuilder builder;
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

int report_job(const std::string& file, const report::JobOptions& options, bool json,
               const Output& html) {
  if (!html.path.empty()) {
    if (const auto possible = check_output(html); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
  }
  const auto job = read_job(file);
  if (!job) return complain(job.error(), status_of_input(job.error()));
  if (!html.path.empty()) {
    const std::string name = std::filesystem::path(file).filename();
    const auto page = report::job_to_html(
        *job, options, {JOULEPROF_VERSION, "jouleprof report " + report::shell_word(name)});
    if (!page) return complain(page.error(), kInternalError);
    const auto made = write_output(html, *page);
    return made ? kDone : complain(made.error(), kCannotWrite);
  }
  const auto written = write_output(
      Output{}, json ? report::job_to_json(*job, options)
                     : report::job_to_text(*job, options, text_options(STDOUT_FILENO)));
  return written ? kDone : complain(written.error(), kCannotWrite);
}

}  // namespace jouleprof::cli
