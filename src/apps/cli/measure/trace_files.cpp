#include "apps/cli/measure/trace_files.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

// Finds the installed files that traced programs load.

// The folders to search, in order, for a tool in `folder`: of an installation, of the Python
// package, of the build tree.
std::vector<std::filesystem::path> inject_library_places(const std::filesystem::path& folder);
std::vector<std::filesystem::path> python_hook_places(const std::filesystem::path& folder);

// libjouleprof_inject.so: the file that JOULEPROF_INJECT_LIBRARY names, else one of the places
// above. Errors: not_found, with the places that were tried.
Result<std::filesystem::path> find_inject_library();

// The folder of our sitecustomize.py. Errors: as above.
Result<std::filesystem::path> find_python_hook();

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

constexpr Duration kLayersOnCpu = std::chrono::milliseconds{100};

}  // namespace

bool may_use_cuda(const meters::MeterSet& found) {
  for (const auto& meter : found.meters) {
    for (const auto& domain : meter->domains()) {
      if (domain.kind == model::DomainKind::kGpu && domain.unavailable_reason.empty()) return true;
    }
  }
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored) ||
         std::filesystem::exists("/dev/dxg", ignored);
}

Result<double> parse_replay(const std::string& text) {
  const bool bare = parse_number(text).has_value();
  const auto each = parse_duration(bare ? text + "s" : text);
  if (!each) return forward_error(each);
  if (*each < std::chrono::milliseconds{100} || *each > std::chrono::minutes{1}) {
    return fail(Errc::kInvalidArgument, "--replay must be from 100ms to 60s");
  }
  return seconds(*each);
}

Result<void> find_trace_files(session::TraceOptions& trace) {
  auto library = find_inject_library();
  if (!library) return forward_error(library);
  trace.inject_library = std::move(*library);
  auto hook = find_python_hook();
  if (!hook && trace.layers) return forward_error(hook);
  if (hook) trace.python_hook = std::move(*hook);
  return {};
}

void choose_clock_of_layers(const meters::MeterSet& found, session::SessionOptions& options) {
  auto& trace = options.trace;
  if (trace.kernels && trace.layers && !may_use_cuda(found)) {
    trace.kernels = trace.events = false;
    trace.remark =
        "this machine has no NVIDIA GPU: kernels are not traced, and layers share energy by "
        "their time "
        "on the CPU";
  }
  // What the processes used in a second is too coarse for that.
  const bool of_layers = trace.layers || !trace.folder.empty();
  if (of_layers && !trace.kernels) options.process_period = kLayersOnCpu;
}

}  // namespace jouleprof::cli
