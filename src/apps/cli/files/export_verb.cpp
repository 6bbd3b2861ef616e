#include <fmt/format.h>

#include "apps/cli/exit_status.h"
#include "apps/cli/files/activity_choice.h"
#include "apps/cli/input.h"
#include "apps/cli/verb.h"

namespace jouleprof::cli {
namespace {

class ExportVerb : public Verb {
 public:
  std::string_view name() const override { return "export"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    std::vector<std::string> names;
    for (const report::Format* format : report::formats()) names.emplace_back(format->name);
    app.add_option("--format", format_, "")->check(CLI::IsMember(names));
    app.add_option("-o,--output", output_, "");
    app.add_flag("-f,--force", force_, "");
    choice_.declare(app);
  }

  int run(const std::vector<std::string>&) override {
    report::FormatOptions options;
    options.version = JOULEPROF_VERSION;
    if (!choice_.by.empty()) {
      auto by = choice_.options(true);
      if (!by) return complain(by.error(), kUsageError);
      options.by = std::move(*by);
    }
    const Output output{output_, force_, {input_.file}};
    if (auto possible = check_output(output); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
    const auto run = input_.open();
    if (!run) return complain(run.error(), status_of_input(run.error()));
    return write_run(*run, input_, chosen_format(), options, output);
  }

 private:
  const report::Format& chosen_format() const {
    if (const auto* named = report::find_format(format_)) return *named;
    const auto* of_file = report::format_of_file(output_);
    return of_file != nullptr ? *of_file : *report::find_format("csv");
  }

  Input input_;
  ActivityChoice choice_;
  std::string format_;  // empty: by the output's name
  std::string output_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_export() { return std::make_unique<ExportVerb>(); }

}  // namespace jouleprof::cli
