// The verbs `export` and `ledger`.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"

namespace jouleprof::cli {
namespace {

// A Python without the package says what to install.
constexpr const char* kStart = R"(
import importlib, sys
try:
    main = importlib.import_module("jouleprof._recorded." + sys.argv[1]).main
except ImportError as error:
    print(f"jouleprof: {sys.executable} cannot import jouleprof ({error}); "
          "pip install '.[tables]' in a clone, or name another Python with --python or JOULEPROF_PYTHON", file=sys.stderr)
    sys.exit(6)
sys.exit(main(sys.argv[2:]))
)";

// Becomes `python` with main() of jouleprof._recorded.MODULE and these words. Returns, with an exit
// status, only where that cannot be started.
int become_python(const std::string& python, const std::string& module,
                  const std::vector<std::string>& words) {
  std::vector<std::string> all{python, "-c", kStart, module};
  all.insert(all.end(), words.begin(), words.end());
  // The package asks this tool for the figures.
  std::error_code err;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", err);
  if (!err) ::setenv("JOULEPROF_TOOL", self.c_str(), 0);
  std::vector<char*> argv;
  for (auto& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Error error = system_error(fmt::format("cannot run '{}'", python), errno);
  error.message += "; name a Python that has jouleprof with --python or JOULEPROF_PYTHON";
  return complain(error, kUsageError);
}

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
    const auto of_report = [](const std::string& name) {
      const auto* option = report_option(name);
      return option == nullptr ? std::string() : instead_text(name, option);
    };
    std::vector<std::string> names;
    for (const report::Format* format : report::formats()) {
      if (!report_option(format->name)) names.emplace_back(format->name);
    }
    names.emplace_back(kParquet);
    add(app, "--format", format_)->check(of_report)->check(one_of(names));
    add(app, "--output", output_);
    add(app, "--force", force_);
    add(app, "--tables", tables_);
    wall_.declare(app);
    add(app, "--python", python_);
    app.final_callback([this, &app] { is_python_named_ = app.count("--python") > 0; });
  }

  int run(const std::vector<std::string>&) override {
    if (format_ == kParquet) return run_tables();
    if (auto other = other_ending(); !other.empty()) return complain_of_usage(other);
    if (!tables_.empty() || is_python_named_) {
      return complain_of_usage(fmt::format("{} is of --format parquet: leave it out",
                                           tables_.empty() ? "--python" : "--tables"));
    }
    report::FormatOptions options;
    options.version = JOULEPROF_VERSION;
    if (!wall_.files.empty() && !chosen_format().name.starts_with("evidence")) {
      return complain_of_usage("--wall is of --format evidence");
    }
    auto wall = wall_.of_run();
    if (!wall) return complain(wall.error(), status_of_input(wall.error()));
    options.wall = std::move(*wall);
    if (const auto* option = report_option(chosen_format().name)) {
      return complain_of_usage(instead_text(output_, option));
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

  // What a name that promises another kind of file is answered with: it would get CSV.
  std::string other_ending() const {
    if (!format_.empty() || report::format_of_file(output_) != nullptr) return {};
    std::filesystem::path file = output_;
    if (file.extension() == ".gz") file.replace_extension();
    const std::string ending = file.extension();
    if (ending == ".parquet") {
      return fmt::format(
          "{}: a recording has several tables, which --format parquet writes into a folder: "
          "--format parquet -o FOLDER",
          output_);
    }
    constexpr std::array kOfText{"", ".", ".txt", ".log", ".dat", ".out"};
    if (std::ranges::find(kOfText, ending) != kOfText.end()) return {};
    return fmt::format(
        "{}: no format has the ending {}; --format says which to write, --format csv the readings",
        output_, ending);
  }

  static std::string instead_text(const std::string& what, const char* option) {
    return fmt::format("{} is of another verb: jouleprof report FILE{}", what, option);
  }

  int run_tables() const {
    if (output_.empty()) {
      return complain_of_usage(
          "--format parquet writes files into a folder: give it with -o FOLDER");
    }
    if (!input_.part.is_whole()) {
      return complain_of_usage(
          "--format parquet has all tables of the whole recording: leave out --from and "
          "--to");
    }
    return export_tables({input_.file, input_.run, output_, tables_, python_});
  }

  const report::Format& chosen_format() const {
    if (const auto* named = report::find_format(format_)) return *named;
    const auto* of_file = report::format_of_file(output_);
    return of_file != nullptr ? *of_file : *report::find_format("csv");
  }

  Input input_;
  std::string format_;  // empty: by the output's name
  std::string output_;
  bool force_ = false;
  std::string tables_;
  WallChoice wall_;
  std::string python_ = "python3";
  bool is_python_named_ = false;  // on the command line: a setting is no request
};

class LedgerVerb : public Verb {
 public:
  std::string_view name() const override { return "ledger"; }

  void declare(CLI::App& app) override {
    add(app, "FILES", files_);
    add(app, "--output", output_)->required();
    add(app, "--compact", compact_);
    add(app, "--python", python_);
  }

  int run(const std::vector<std::string>&) override {
    if (files_.empty() && !compact_) {
      return complain_of_usage("name the recordings to add, or give --compact");
    }
    std::vector<std::string> words{"-o", output_};
    if (compact_) words.emplace_back("--compact");
    words.emplace_back("--");
    words.insert(words.end(), files_.begin(), files_.end());
    return become_python(python_, "ledger", words);
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  bool compact_ = false;
  std::string python_ = "python3";
};

}  // namespace

const char* report_option(std::string_view format) {
  if (format == "text") return "";
  if (format == "json") return " --json";
  if (format == "html") return " --html OUT";
  if (format == "svg") return " --svg OUT";
  if (format == "png") return " --png OUT";
  return format == "domains" ? " --csv" : nullptr;
}

std::unique_ptr<Verb> make_export() { return std::make_unique<ExportVerb>(); }

std::unique_ptr<Verb> make_ledger() { return std::make_unique<LedgerVerb>(); }

}  // namespace jouleprof::cli
