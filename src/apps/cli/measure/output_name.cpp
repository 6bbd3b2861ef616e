#include "apps/cli/measure/output_name.h"

#include <fmt/format.h>
#include <unistd.h>

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

}  // namespace jouleprof::cli
