#include <fmt/format.h>

#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/verb.h"
#include "base/say.h"
#include "recording/merge/merged_file.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

class MergeVerb : public Verb {
 public:
  std::string_view name() const override { return "merge"; }

  void declare(CLI::App& app) override {
    app.add_option("FILES", files_, "")->required();
    app.add_option("-o,--output", output_, "")->required();
    app.add_flag("-f,--force", force_, "");
    app.add_flag("-q,--quiet", quiet_, "");
  }

  int run(const std::vector<std::string>&) override {
    const std::vector<std::filesystem::path> inputs(files_.begin(), files_.end());
    const auto count = recording::merge_recordings(inputs, output_, force_);
    if (!count) return complain(count.error(), status_of_input(count.error()));
    if (!quiet_) {
      say("merged     {} recordings into {}\nnext       jouleprof report {}\n", *count,
          report::printable(output_), report::printable(report::shell_word(output_)));
    }
    return kDone;
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  bool force_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_merge() { return std::make_unique<MergeVerb>(); }

}  // namespace jouleprof::cli
