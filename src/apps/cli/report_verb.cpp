#include "apps/cli/exit_status.h"
#include "apps/cli/input.h"
#include "apps/cli/terminal.h"
#include "apps/cli/verb.h"
#include "report/render.h"

namespace jouleprof::cli {
namespace {

class ReportVerb : public Verb {
 public:
  std::string_view name() const override { return "report"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    auto* json = app.add_flag("--json", json_, "");
    app.add_flag("--csv", csv_, "")->excludes(json);
  }

  int run(const std::vector<std::string>&) override {
    const auto analysed = read_and_analyse(input_);
    if (!analysed) return complain(analysed.error(), status_of_input(analysed.error()));
    const auto written = write_output("", false, [&](std::ostream& out) {
      if (json_) {
        out << report::to_json(analysed->profile);
      } else if (csv_) {
        out << report::to_csv(analysed->profile);
      } else {
        out << report::to_text(analysed->profile, text_options(STDOUT_FILENO));
      }
    });
    return written ? kDone : complain(written.error(), kCannotWrite);
  }

 private:
  Input input_;
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report() { return std::make_unique<ReportVerb>(); }

}  // namespace jouleprof::cli
