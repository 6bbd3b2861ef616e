#include "apps/cli/files/tables_export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "apps/cli/terminal/exit_status.h"
#include "base/file.h"

namespace jouleprof::cli {
namespace {

// A Python without the package says what to install.
constexpr const char* kStart = R"(
import sys
try:
    from jouleprof._recorded.export import main
except ImportError as error:
    sys.exit(f"jouleprof: {sys.executable} cannot import jouleprof ({error}); "
             "pip install 'jouleprof[tables]', or name another Python with --python or JOULEPROF_PYTHON")
sys.exit(main(sys.argv[1:]))
)";

}  // namespace

int export_tables(const TablesExport& wanted) {
  std::vector<std::string> words{wanted.python, "-c", kStart, wanted.file, "-o", wanted.folder};
  if (wanted.run > 0) words.insert(words.end(), {"--run", std::to_string(wanted.run)});
  if (!wanted.tables.empty()) words.insert(words.end(), {"--tables", wanted.tables});
  // The package asks this tool for the figures.
  std::error_code err;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", err);
  if (!err) ::setenv("JOULEPROF_TOOL", self.c_str(), 0);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Error error = system_error(fmt::format("cannot run '{}'", wanted.python), errno);
  error.message += "; name a Python that has jouleprof with --python or JOULEPROF_PYTHON";
  return complain(error, kNotStarted);
}

}  // namespace jouleprof::cli
