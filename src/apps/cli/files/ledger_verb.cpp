#include "apps/cli/files/ledger_verb.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/exit_status.h"
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
      return complain({Errc::kInvalidArgument, "name the recordings to add, or give --compact"},
                      kUsageError);
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
  return complain(error, kNotStarted);
}

std::unique_ptr<Verb> make_ledger() { return std::make_unique<LedgerVerb>(); }

}  // namespace jouleprof::cli
