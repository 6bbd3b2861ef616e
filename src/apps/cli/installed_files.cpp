#include "apps/cli/installed_files.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/file.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libjouleprof_inject.so";
constexpr const char* kHook = "sitecustomize.py";

fs::path own_folder() {
  std::error_code err;
  return fs::read_symlink("/proc/self/exe", err).parent_path();
}

// Folders such as lib/x86_64-linux-gnu, where Debian's libraries lie.
std::vector<fs::path> architecture_folders(const fs::path& lib) {
  std::vector<fs::path> folders;
  for (const auto& name : list_folder(lib).value_or(std::vector<std::string>{})) {
    if (name.ends_with("-linux-gnu")) folders.push_back(lib / name);
  }
  return folders;
}

Result<fs::path> first_of(const std::vector<fs::path>& places, const fs::path& file,
                          std::string_view what) {
  std::string tried;
  for (const auto& place : places) {
    std::error_code err;
    if (fs::is_regular_file(place / file, err)) return fs::weakly_canonical(place, err);
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", place.string());
  }
  return fail(Errc::kNotFound,
              fmt::format("{} was not found; tried {}. Install jouleprof as a whole", what, tried));
}

}  // namespace

std::vector<fs::path> inject_library_places(const fs::path& folder) {
  std::vector<fs::path> places{folder / "../lib"};
  for (const auto& architecture : architecture_folders(folder / "../lib")) {
    places.push_back(architecture);
  }
  places.push_back(folder / "../lib64");
  places.push_back(folder);
  places.push_back(folder / "../inject");
  for (auto& place : places) place = place.lexically_normal();
  return places;
}

std::vector<fs::path> python_hook_places(const fs::path& folder) {
  std::vector<fs::path> places{folder / "../share/jouleprof/python_hook", folder / "../_hook",
                               folder / "python_hook"};
  for (auto& place : places) place = place.lexically_normal();
  return places;
}

Result<fs::path> find_inject_library() {
  const char* named = std::getenv("JOULEPROF_INJECT_LIBRARY");
  if (named != nullptr && *named != '\0') {
    std::error_code err;
    const fs::path path = fs::absolute(named, err);
    if (fs::is_regular_file(path, err)) return path;
    return fail(Errc::kNotFound,
                fmt::format("JOULEPROF_INJECT_LIBRARY names {}, which is not a file", named));
  }
  auto folder = first_of(inject_library_places(own_folder()), kLibrary,
                         fmt::format("{}, which traces kernels,", kLibrary));
  if (!folder) {
    folder.error().message += ", or set JOULEPROF_INJECT_LIBRARY to its path";
    return folder;
  }
  return *folder / kLibrary;
}

Result<fs::path> find_python_hook() {
  return first_of(python_hook_places(own_folder()), kHook,
                  fmt::format("{}, which traces layers,", kHook));
}

}  // namespace jouleprof::cli
