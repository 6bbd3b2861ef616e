#include "apps/cli/options/wall_choice.h"

#include <fmt/format.h>

#include "importers/source_text.h"
#include "importers/wall/wall_log.h"

namespace jouleprof::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 30;

Result<model::WallLog> read_log(const std::string& file, const std::string& column) {
  const auto source = importers::read_source(file, kLargestFile);
  if (!source) return forward_error(source);
  return importers::read_wall_log(source->text, file, column);
}

}  // namespace

void WallChoice::declare(CLI::App& app) {
  auto* wall = app.add_option("--wall", files, "")->allow_extra_args(false);
  app.add_option("--wall-column", column, "")->needs(wall);
}

Result<std::optional<model::WallLog>> WallChoice::of_run() const {
  if (files.empty()) return std::optional<model::WallLog>();
  if (files.size() > 1) {
    return fail(Errc::kInvalidArgument,
                "a recording has one --wall; several are of a job's machines");
  }
  auto log = read_log(files.front(), column);
  if (!log) return forward_error(log);
  return std::optional(std::move(*log));
}

Result<std::vector<std::pair<std::string, model::WallLog>>> WallChoice::of_job() const {
  std::vector<std::pair<std::string, model::WallLog>> logs;
  for (const auto& word : files) {
    const auto equals = word.find('=');
    if (equals == word.npos || equals == 0) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--wall {}: of a job, name the machine, such as --wall node1={}",
                              word, word));
    }
    auto log = read_log(word.substr(equals + 1), column);
    if (!log) return forward_error(log);
    logs.emplace_back(word.substr(0, equals), std::move(*log));
  }
  return logs;
}

}  // namespace jouleprof::cli
