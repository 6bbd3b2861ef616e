
#include "analysis/job/job_ranks.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"
#include "base/text.h"
#include "recording/merge/merged_file.h"
#include "report/cells.h"
#include "report/results/job.h"

namespace jouleprof::cli {
namespace {

class MergeVerb : public Verb {
 public:
  std::string_view name() const override { return "merge"; }

  void declare(CLI::App& app) override {
    add(app, "FILES", files_)->required();
    add(app, "--output", output_)->required();
    add(app, "--force", force_);
    add(app, "--quiet", quiet_);
    add(app, "--json", json_);
    add(app, "--strict", strict_);
  }

  int run(const std::vector<std::string>&) override {
    // Whether it may be replaced is seen to later.
    if (auto possible = check_output({.path = output_, .overwrite = true, .others = {}});
        !possible) {
      return complain(possible.error(), kCannotWrite);
    }
    const std::vector<std::filesystem::path> inputs(files_.begin(), files_.end());
    bool is_of_output = false;
    analysis::RankCensus census;
    std::vector<std::string> cut_off;
    const auto count = recording::merge_recordings(
        inputs, output_, force_,
        [&](const std::string& name, const model::Recording& recording) {
          census.add(name, recording);
          if (!recording.run.complete) cut_off.push_back(name + " was cut off before its end");
        },
        &is_of_output);
    if (!count) {
      return complain(count.error(), is_of_output ? kCannotWrite : status_of_input(count.error()));
    }
    auto found = census.finish();
    found.warnings.insert(found.warnings.begin(), cut_off.begin(), cut_off.end());
    const auto ranks = report::ranks_text(found.groups);
    if (!quiet_) {
      say("merged     {} into {}{}\n", counted(*count, "recording"), report::printable(output_),
          ranks.empty() ? "" : ", of " + ranks);
    }
    for (const auto& warning : found.warnings) say("warning    {}\n", report::printable(warning));
    if (!quiet_) {
      say("next       jouleprof report {}\n", report::printable(report::shell_word(output_)));
    }
    if (json_) {
      const auto written = write_output({}, report::merge_to_json(output_, *count, found));
      if (!written) return complain(written.error(), kCannotWrite);
    }
    return strict_ && !found.warnings.empty() ? kGateFailed : kDone;
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  bool force_ = false;
  bool quiet_ = false;
  bool json_ = false;
  bool strict_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_merge() { return std::make_unique<MergeVerb>(); }

}  // namespace jouleprof::cli
