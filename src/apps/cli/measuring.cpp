#include "apps/cli/measuring.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "recording/merge/merged_file.h"
#include "recording/writer.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

void warn(const Error& error) { say("jouleprof: warning: {}\n", report::printable(error.message)); }

bool exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

constexpr const char* kLibrary = "libjouleprof_inject.so";
constexpr const char* kHook = "sitecustomize.py";

fs::path own_folder() {
  std::error_code err;
  return fs::read_symlink("/proc/self/exe", err).parent_path();
}

// Folders such as lib/x86_64-linux-gnu, where Debian's libraries lie.
std::vector<fs::path> architecture_folders(const fs::path& lib) {
  std::vector<fs::path> folders;
  for (const auto& name : names_in(lib)) {
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

// The folders to search, in order, for a tool in `folder`: of an installation, of the Python
// package, of the build tree.
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

// libjouleprof_inject.so: the file that JOULEPROF_INJECT_LIBRARY names, else one of the places
// above. Errors: not_found, with the places that were tried.
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

// The folder of our sitecustomize.py. Errors: as above.
Result<fs::path> find_python_hook() {
  return first_of(python_hook_places(own_folder()), kHook,
                  fmt::format("{}, which traces layers,", kHook));
}

constexpr Duration kLayersOnCpu = std::chrono::milliseconds{100};

// Whether a program here may use CUDA: NVML lists a GPU, or its driver is present without NVML.
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

}  // namespace

Result<Destination> Destination::file(const std::filesystem::path& path, bool overwrite) {
  std::error_code ignored;
  if (!overwrite && std::filesystem::is_regular_file(path, ignored)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} exists; choose another name or use --force", path.string()));
  }
  auto file = session::RecordingSink::create(path, overwrite);
  if (!file) return forward_error(file);
  Destination destination;
  destination.path_ = path;
  destination.file_ = std::move(*file);
  return destination;
}

session::Sink& Destination::sink() {
  if (file_) return *file_;
  if (!memory_) memory_ = std::make_shared<session::MemorySink>();
  return *memory_;
}

std::filesystem::path Destination::kept() const {
  std::error_code ignored;  // the command may have removed its folder
  const bool is_there = file_ && file_->has_file() && std::filesystem::exists(path_, ignored);
  return is_there ? path_ : std::filesystem::path();
}

Result<model::Recording> Destination::recording() const {
  if (file_) return file_->recording();
  return memory_ ? memory_->recording : model::Recording{};
}

void Destination::remove() {
  if (file_) file_->remove();
}

std::filesystem::path default_recording_name(const std::vector<std::string>& command) {
  std::string stem = "jouleprof";
  if (!command.empty()) {
    std::filesystem::path named = command.front();
    // `python train.py`: the script says more than the interpreter.
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::filesystem::path word = command[i];
      if (word.extension() == ".py" || word.extension() == ".sh") {
        named = word;
        break;
      }
    }
    if (!named.stem().empty()) stem = named.stem().string();
  }
  const std::filesystem::path path = stem + ".jprof";
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? next_name(path) : path;
}

std::filesystem::path next_name(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path next;
  for (int n = 2; next.empty() || std::filesystem::exists(next, ignored); ++n) {
    next = path;
    next.replace_filename(
        fmt::format("{}-{}{}", path.stem().string(), n, path.extension().string()));
  }
  return next;
}

bool is_name_of(const std::filesystem::path& name, const std::filesystem::path& path) {
  if (is_same_file(name, path)) return true;
  std::error_code err;
  const auto folder = std::filesystem::absolute(path, err).parent_path();
  if (name.parent_path() != folder || name.extension() != path.extension()) return false;
  const std::string stem = name.stem().string();
  const std::string first = path.stem().string() + '-';
  return stem.starts_with(first) && parse_integer(stem.substr(first.size())).value_or(0) > 1;
}

void SensorChoice::declare(CLI::App& app) {
  const auto add_listed = [&](const char* name, auto& variable) {
    return find_text(app, name) != nullptr ? add(app, name, variable) : nullptr;
  };
  add(app, "--devices", devices)->delimiter(',');
  add_listed("--cpu-tdp", cpu_tdp);
  add_listed("--guest-file", guest_file);
  if (auto* wall = add_listed("--wall-meter", wall_meters)) wall->allow_extra_args(false);
  add_listed("--no-service", no_service);
}

Result<meters::MeterOptions> SensorChoice::meters(const meters::Demand& demand) const {
  meters::MeterOptions options;
  options.demand = demand;
  options.use_service = !no_service && cpu_tdp.empty() && guest_file.empty();
  options.process_period = kProcessPeriod;
  options.guest_file = guest_file;
  options.wall_meters = wall_meters;
  if (cpu_tdp.empty()) return options;
  const auto watts = parse_number(cpu_tdp);
  if (!watts || *watts <= 0 || *watts > 1e6) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--cpu-tdp {}: give watts, such as --cpu-tdp 105", cpu_tdp));
  }
  options.cpu_tdp = Power::watts(*watts);
  return options;
}

std::filesystem::path kernel_store_path() {
  const auto calibration = meters::nvml::calibration_path();
  return calibration.empty() ? calibration : calibration.parent_path() / "kernels.sqlite";
}

KernelMemory::KernelMemory(const std::string& driver)
    : enabled_(!driver.empty() && !kernel_store_path().empty()),
      store_(kernel_store_path(), driver) {}

void KernelMemory::recall(model::Recording& recording, const std::filesystem::path& file) const {
  if (!enabled_ || recording.traces.empty()) return;
  auto found = store_.find(recording);
  if (!found) return warn(found.error());
  if (!file.empty()) {
    // Figures that the file does not explain must not be printed.
    if (const auto added = recording::add_remembered(file, *found); !added) {
      return warn(added.error());
    }
  }
  recording.remembered = std::move(*found);
}

void KernelMemory::store(const std::vector<model::ActivityProfile>& activity) const {
  if (!enabled_) return;
  for (const auto& device : activity) {
    if (const auto stored = store_.add(device.resolved); !stored) return warn(stored.error());
  }
}

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
