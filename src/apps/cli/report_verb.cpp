#include <fmt/format.h>

#include "analysis/attribute.h"
#include "apps/cli/activity_choice.h"
#include "apps/cli/exit_status.h"
#include "apps/cli/input.h"
#include "apps/cli/terminal.h"
#include "apps/cli/verb.h"
#include "recording/reader.h"
#include "report/activity.h"
#include "report/render.h"

namespace jouleprof::cli {
namespace {

// Why there is nothing to tell of, as far as the recording knows.
Error nothing_traced(const std::string& file, const model::Recording& recording) {
  std::string text = fmt::format(
      "{} holds no trace of kernels or layers; make one with: jouleprof run --kernels -- COMMAND",
      file);
  for (const auto& warning : recording.warnings) {
    if (warning.text.find("trace") != std::string::npos) text += "\n  " + warning.text;
  }
  return {Errc::kCorrupt, std::move(text)};
}

class ReportVerb : public Verb {
 public:
  std::string_view name() const override { return "report"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    auto* json = app.add_flag("--json", json_, "");
    app.add_flag("--csv", csv_, "")->excludes(json);
    choice_.declare(app);
  }

  int run(const std::vector<std::string>&) override {
    if (!choice_.by.empty()) return run_activity();
    const auto analysed = read_and_analyse(input_);
    if (!analysed) return complain(analysed.error(), status_of_input(analysed.error()));
    return write([&](std::ostream& out) {
      if (json_) {
        out << report::to_json(analysed->profile);
      } else if (csv_) {
        out << report::to_csv(analysed->profile);
      } else {
        out << report::to_text(analysed->profile, text_options(STDOUT_FILENO));
      }
    });
  }

 private:
  int run_activity() const {
    const auto options = choice_.options(json_ || csv_);
    if (!options) return complain(options.error(), kUsageError);
    const auto part = input_.options();
    if (!part) return complain(part.error(), kUsageError);
    const auto recording = recording::read_recording(input_.file);
    if (!recording) return complain(recording.error(), status_of_input(recording.error()));
    const auto profiles = analysis::attribute(*recording, *part);
    if (!profiles) {
      return complain(
          {profiles.error().code, fmt::format("{}: {}", input_.file, profiles.error().message)},
          status_of_input(profiles.error()));
    }
    if (profiles->empty()) return complain(nothing_traced(input_.file, *recording), kBadContent);
    return write([&](std::ostream& out) {
      if (json_) {
        out << report::activity_to_json(*profiles, *options);
      } else if (csv_) {
        out << report::activity_to_csv(*profiles, *options);
      } else {
        out << report::activity_to_text(*profiles, *options, text_options(STDOUT_FILENO));
      }
    });
  }

  static int write(const std::function<void(std::ostream&)>& to) {
    const auto written = write_output("", false, to);
    return written ? kDone : complain(written.error(), kCannotWrite);
  }

  Input input_;
  ActivityChoice choice_;
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace jouleprof::cli
