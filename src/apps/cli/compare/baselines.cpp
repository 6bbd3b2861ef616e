#include "apps/cli/compare/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

bool is_file_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 100 &&
         name.find_first_of("/@\\") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= ' '; });
}

Error error_of(const std::string& what, const std::error_code& code) {
  return system_error(what, code.value());
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& name : list_folder(folder).value_or(std::vector<std::string>{})) {
    entries.push_back(folder / name);
  }
  return entries;
}

}  // namespace

Result<Baselines> Baselines::of_user() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const auto data = variable("XDG_DATA_HOME"); !data.empty()) {
    return Baselines(fs::path(data) / "jouleprof" / "baselines");
  }
  if (const auto home = variable("HOME"); !home.empty()) {
    return Baselines(fs::path(home) / ".local" / "share" / "jouleprof" / "baselines");
  }
  return fail(Errc::kNotFound, "there is no folder for baselines: set XDG_DATA_HOME or HOME");
}

Result<void> Baselines::save(std::string_view name, std::string_view commit,
                             const std::vector<fs::path>& recordings) const {
  if (!is_file_name(name) || !is_file_name(commit)) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("--save-baseline {}: a name has no '/', '@' or '\\', and does not begin "
                    "with '.'",
                    name));
  }
  const fs::path folder = folder_ / name / commit;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return tl::unexpected(error_of("cannot make " + folder.string(), failed));
  std::size_t number = sorted_entries(folder).size();
  for (const auto& recording : recordings) {
    fs::path to;
    do {
      to = folder / fmt::format("{:04}.jprof", ++number);
    } while (fs::exists(to));
    fs::copy_file(recording, to, failed);
    if (failed) {
      return tl::unexpected(
          error_of(fmt::format("cannot copy {} to {}", recording.string(), to.string()), failed));
    }
  }
  fs::last_write_time(folder, fs::file_time_type::clock::now(), failed);
  return {};
}

Result<Baselines::Found> Baselines::find(std::string_view name) const {
  const auto at = name.find('@');
  const std::string own(name.substr(0, at));
  const std::string commit(at == std::string_view::npos ? "" : name.substr(at + 1));
  if (!is_file_name(own)) {
    return fail(Errc::kInvalidArgument, fmt::format("--baseline {}: not a name", name));
  }
  std::vector<fs::path> found;
  for (const auto& path : sorted_entries(folder_ / own)) {
    if (path.filename().string().starts_with(commit)) found.push_back(path);
  }
  if (found.empty()) {
    return fail(Errc::kNotFound,
                fmt::format("there is no baseline {} in {}; keep one with jouleprof compare "
                            "--save-baseline {} FILE...",
                            name, folder_.string(), own));
  }
  if (!commit.empty() && found.size() > 1) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("--baseline {}: {} commits begin so; give more of it", name, found.size()));
  }
  const auto newest =
      std::max_element(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
        std::error_code ignored;
        return fs::last_write_time(a, ignored) < fs::last_write_time(b, ignored);
      });
  Found baseline{newest->filename().string(), {}};
  for (const auto& path : sorted_entries(*newest)) {
    if (path.extension() == ".jprof") baseline.recordings.push_back(path);
  }
  return baseline;
}

std::string current_commit() {
  std::string text;
  FILE* git = ::popen("git rev-parse --short=12 HEAD 2>/dev/null", "r");
  if (git != nullptr) {
    std::array<char, 128> line{};
    if (std::fgets(line.data(), line.size(), git) != nullptr) text = trim(line.data());
    ::pclose(git);
  }
  return text.empty() ? "none" : text;
}

}  // namespace jouleprof::cli
