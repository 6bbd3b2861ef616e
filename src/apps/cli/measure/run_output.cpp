#include "apps/cli/measure/run_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apps/cli/terminal/exit_status.h"
#include "base/new_file.h"
#include "base/say.h"
#include "recording/merge/merged_file.h"
#include "report/cells.h"

namespace jouleprof::cli {

Result<std::string> output_name(const std::string& pattern, const std::string& host,
                                const model::Rank& rank) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    const char letter = i + 1 < pattern.size() ? pattern[++i] : ' ';
    const auto unknown = [&](const char* what) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("-o {}: {}; use %h for the host or %p for the process", pattern, what));
    };
    switch (letter) {
      case 'h':
        name += host;
        break;
      case 'p':
        name += std::to_string(::getpid());
        break;
      case 'j':
        if (rank.job.empty()) return unknown("%j is Slurm's job, and SLURM_JOB_ID is not set");
        name += rank.job;
        break;
      case 'r':
        if (!rank.global) return unknown("%r is the rank, and no launcher has set one");
        name += std::to_string(*rank.global);
        break;
      case '%':
        name += '%';
        break;
      default:
        return unknown("after % comes h (host), p (process), j (job), r (rank) or another %");
    }
  }
  return name;
}

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
