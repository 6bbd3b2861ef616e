#include "apps/cli/measure/append_choice.h"

#include <fmt/format.h>

#include "apps/cli/terminal/exit_status.h"
#include "base/new_file.h"
#include "base/say.h"
#include "recording/merge/append.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

bool exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::string KeptRecording::words() const {
  if (path.empty()) return "";
  const std::string file = " " + report::shell_word(path.string());
  return run > 0 ? fmt::format("{} --run {}", file, run) : file;
}

Result<std::string> AppendChoice::output() const {
  if (!exists(file)) return file;
  if (auto possible = recording::check_appendable(file); !possible) return forward_error(possible);
  return next_name(file).string();
}

KeptRecording AppendChoice::conclude(const Destination& destination, bool quiet) const {
  const auto own = destination.kept();
  if (file.empty() || own.empty() || is_same_file(own, file)) return {own};
  const auto number = recording::append_recording(own, file);
  if (!number) {
    complain({number.error().code,
              fmt::format("{}; this run is in {}; jouleprof merge {} {} -o FILE puts them together",
                          number.error().message, own.string(), report::shell_word(file),
                          report::shell_word(own.string()))},
             kCannotWrite);
    return {own};
  }
  std::error_code ignored;
  std::filesystem::remove(own, ignored);
  if (!quiet) say("appended   to {} as run {}\n", report::printable(file), *number);
  return {file, *number};
}

}  // namespace jouleprof::cli
