#include <fmt/format.h>

#include "apps/cli/exit_status.h"
#include "apps/cli/verb.h"
#include "base/text.h"
#include "importers/import.h"
#include "recording/writer.h"

namespace jouleprof::cli {
namespace {

class ImportVerb : public Verb {
 public:
  std::string_view name() const override { return "import"; }

  void declare(CLI::App& app) override {
    app.add_option("FILES", files_, "")->required();
    app.add_option("-o,--output", output_, "")->required();
    app.add_flag("-f,--force", force_, "");
    app.add_option("--format", format_, "");
    app.add_option("--interval", interval_, "");
  }

  int run(const std::vector<std::string>&) override {
    importers::ImportOptions options;
    options.format = format_;
    if (!interval_.empty()) {
      const auto interval = parse_duration(interval_);
      if (!interval) return complain(interval.error(), kUsageError);
      options.interval = *interval;
    }
    auto recording = importers::import_files({files_.begin(), files_.end()}, options);
    if (!recording) return complain(recording.error(), status_of_input(recording.error()));
    recording->run.tool_version = JOULEPROF_VERSION;
    const auto written = recording::write_recording(output_, *recording, {.overwrite = force_});
    if (!written) return complain(written.error(), kCannotWrite);
    for (const auto& warning : recording->warnings) {
      fmt::print(stderr, "jouleprof: note: {}\n", warning.text);
    }
    fmt::print(stderr, "jouleprof: wrote {}; next: jouleprof report {}\n", output_, output_);
    return kDone;
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  std::string format_;
  std::string interval_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_import() { return std::make_unique<ImportVerb>(); }

}  // namespace jouleprof::cli
