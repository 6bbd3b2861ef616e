#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/files/activity_choice.h"
#include "apps/cli/files/ledger_verb.h"
#include "apps/cli/options/input.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/verb.h"
#include "base/file.h"

namespace jouleprof::cli {
namespace {

// `export --format parquet`: the tables of a recording, written by the Python package.

struct TablesExport {
  std::string file;
  unsigned run = 0;    // of a sweep or a merged file; 0: not given
  std::string folder;  // to write into
  std::string tables;  // separated by commas; empty: all
  std::string python;
};

// Becomes the Python process. Returns, with an exit status, only where that cannot be started.
int export_tables(const TablesExport& wanted) {
  std::vector<std::string> words{wanted.file, "-o", wanted.folder};
  if (wanted.run > 0) words.insert(words.end(), {"--run", std::to_string(wanted.run)});
  if (!wanted.tables.empty()) words.insert(words.end(), {"--tables", wanted.tables});
  return become_python(wanted.python, "export", words);
}

class ExportVerb : public Verb {
 public:
  std::string_view name() const override { return "export"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    std::vector<std::string> names;
    for (const report::Format* format : report::formats()) names.emplace_back(format->name);
    names.emplace_back(kParquet);
    app.add_option("--format", format_, "")->check(CLI::IsMember(names));
    app.add_option("-o,--output", output_, "");
    app.add_flag("-f,--force", force_, "");
    choice_.declare(app);
    app.add_option("--tables", tables_, "");
    app.add_option("--python", python_, "")->envname("JOULEPROF_PYTHON");
  }

  int run(const std::vector<std::string>&) override {
    if (format_ == kParquet) return run_tables();
    if (!tables_.empty()) {
      return complain({Errc::kInvalidArgument, "--tables is of --format parquet"}, kUsageError);
    }
    report::FormatOptions options;
    options.version = JOULEPROF_VERSION;
    if (choice_.by == "window") {
      options.windows = true;
    } else if (!choice_.by.empty()) {
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
  static constexpr const char* kParquet = "parquet";  // of many files, so that it is no Format

  int run_tables() const {
    if (output_.empty()) {
      return complain({Errc::kInvalidArgument,
                       "--format parquet writes files into a folder: give it with -o FOLDER"},
                      kUsageError);
    }
    if (!choice_.by.empty() || !input_.from.empty() || !input_.to.empty()) {
      return complain({Errc::kInvalidArgument,
                       "--format parquet has all tables of the whole recording: leave out --by, "
                       "--from and --to"},
                      kUsageError);
    }
    return export_tables({input_.file, input_.run, output_, tables_, python_});
  }

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
  std::string tables_;
  std::string python_ = "python3";
};

}  // namespace

std::unique_ptr<Verb> make_export() { return std::make_unique<ExportVerb>(); }

}  // namespace jouleprof::cli
