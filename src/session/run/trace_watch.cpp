#include "session/run/trace_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaVariable = "CUDA_INJECTION64_PATH";
constexpr const char* kNvtxVariable = "NVTX_INJECTION64_PATH";
constexpr const char* kRocmToolsVariable = "ROCP_TOOL_LIBRARIES";
constexpr const char* kRocmRegisterVariable = "ROCPROFILER_REGISTER_LIBRARY";
constexpr const char* kRocmChoiceVariable = "JOULEPROF_ROCPROFILER_LIBRARY";
constexpr Duration kLookAgain = std::chrono::milliseconds{10};

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

// Errors: unavailable.
Result<fs::path> make_folder(const TraceOptions& options) {
  std::error_code err;
  if (!options.recording.empty()) {
    const fs::path overlapped = fs::absolute(options.recording.string() + ".spool", err);
    if (::mkdir(overlapped.c_str(), 0700) == 0) return overlapped;
    // Left by a run that was killed: whatever is in it may still be wanted.
    std::string another = overlapped.string() + "-XXXXXX";
    if (errno == EEXIST && ::mkdtemp(another.data()) != nullptr) return fs::path(another);
  }
  const char* temporary = ::getenv("TMPDIR");
  std::string made = fmt::format("{}/jouleprof-spool-XXXXXX",
                                 temporary != nullptr && *temporary == '/' ? temporary : "/tmp");
  if (::mkdtemp(made.data()) != nullptr) return fs::path(made);
  Error error = system_error("cannot make a folder for the trace, " + made, errno);
  error.code = Errc::kUnavailable;
  error.message += "; set TMPDIR to a folder that you may write to";
  return tl::unexpected(std::move(error));
}

// librocprofiler-sdk where this machine's ROCm has it; empty: nowhere. A ROCm runtime aborts its
// program where it is to load a tool and does not find this library, so that it is given the path.
fs::path find_rocprofiler(const Environment& environment, const fs::path& root) {
  std::vector<fs::path> folders;
  const auto paths = environment("LD_LIBRARY_PATH");
  for (const auto& folder : split(paths ? *paths : "", ':')) folders.emplace_back(folder);
  if (const auto rocm = environment("ROCM_PATH")) folders.push_back(fs::path(*rocm) / "lib");
  folders.push_back(root / "opt/rocm/lib");
  auto versions = names_in(root / "opt");
  std::sort(versions.rbegin(), versions.rend());
  for (const auto& name : versions) {
    if (name.starts_with("rocm-")) folders.push_back(root / "opt" / name / "lib");
  }
  for (const char* system : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"}) {
    folders.push_back(root / system);
  }
  std::error_code err;
  for (const auto& folder : folders) {
    if (!folder.is_absolute()) continue;
    for (const char* end : {"", ".1", ".0"}) {
      const fs::path file = folder / (std::string("librocprofiler-sdk.so") + end);
      if (fs::is_regular_file(file, err)) return file;
    }
  }
  return {};
}

// What the dynamic loader lacks to load a library, without loading it: a line of ldd's; empty:
// nothing, or there is no ldd.
std::string missing_of(const fs::path& library) {
  const std::string path = library.string();
  if (path.find('\'') != std::string::npos) return "its path has a quote";
  std::FILE* const list = ::popen(fmt::format("ldd '{}' 2>&1", path).c_str(), "r");
  if (list == nullptr) return {};
  std::string found;
  char line[4096];
  while (std::fgets(line, sizeof line, list) != nullptr) {
    const std::string_view text = trim(line);
    const bool is_missing =
        text.ends_with("=> not found") || text.find("not a dynamic executable") != text.npos;
    if (is_missing && found.empty()) found = text;
  }
  ::pclose(list);
  return found;
}

// Whether a library that the user's environment names is another tool's.
bool is_others(const std::optional<std::string>& path, const fs::path& ours) {
  return path && !path->empty() && fs::path(*path).filename() != ours.filename();
}

// Variables that a traced process finds, too (trace_watch.h has the others).
constexpr const char* kTraceWhatVariable = "JOULEPROF_TRACE_WHAT";  // kernels,layers,events
constexpr const char* kInjectVariable = "JOULEPROF_INJECT";         // the library, for Python

}  // namespace

// What the processes recorded since it was last taken.
class TraceWatch::Collector final : public spool::SpoolConsumer {
 public:
  // A traced process, and what it recorded.
  struct Traced {
    spool::SpoolProcess about;
    spool::TraceSink sink;
    std::optional<model::TraceStatus> taken;  // absent: nothing was

    bool has_news() const {
      const auto& t = sink.trace;
      return taken != t.status || !(t.devices.empty() && t.classes.empty() && t.layers.empty() &&
                                    t.ranges.empty() && t.scopes.empty() && t.chunks.empty());
    }
  };

  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    Traced& traced = all.emplace_back();
    traced.about = process;
    static_cast<model::TracedProcess&>(traced.sink.trace) = process;
    return traced.sink;
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }

  void take(const spool::SpoolReader& reader, std::vector<Batch::TracePart>& parts) {
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      Traced& traced = all[i];
      if (!traced.has_news()) continue;
      model::Trace rest;
      static_cast<model::TracedProcess&>(rest) = traced.about;
      rest.status = traced.sink.trace.status;
      traced.taken = rest.status;
      traced.sink.trace.position = reader.position(traced.about);
      parts.push_back({i, std::exchange(traced.sink.trace, std::move(rest))});
    }
  }

  std::deque<Traced> all;  // by trace; they stay where they are
  std::vector<std::string> warnings;
};

TraceWatch::TraceWatch(const TraceOptions& options, fs::path folder, bool own)
    : options_(options),
      folder_(std::move(folder)),
      own_(own),
      lock_(spool::FolderLock::of_reader(folder_)),
      reader_(folder_),
      collector_(std::make_unique<Collector>()) {}

Result<std::unique_ptr<TraceWatch>> TraceWatch::create(const TraceOptions& options) {
  if (!options.folder.empty()) {
    if (auto names = list_folder(options.folder); !names) {
      return fail(names.error().code,
                  fmt::format("cannot read the trace: {}", names.error().message));
    }
    std::error_code err;
    return std::unique_ptr<TraceWatch>(
        new TraceWatch(options, fs::absolute(options.folder, err), false));
  }
  auto folder = make_folder(options);
  if (!folder) return forward_error(folder);
  return std::unique_ptr<TraceWatch>(new TraceWatch(options, std::move(*folder), true));
}

TraceWatch::~TraceWatch() {
  std::error_code ignored;
  if (own_) fs::remove(folder_, ignored);
}

std::vector<std::string> TraceWatch::variables(const Environment& environment,
                                               std::vector<std::string>& warnings) {
  std::vector<std::string> all;
  if (!options_.remark.empty()) warnings.push_back(options_.remark);
  std::string what;
  const auto want = [&what](bool wanted, const char* word) {
    if (wanted) what += (what.empty() ? "" : ",") + std::string(word);
  };
  want(options_.kernels, "kernels");
  want(options_.layers, "layers");
  want(options_.events, "events");
  want(options_.serving, "serving");
  const auto set = [&all](const char* name, const std::string& value) {
    all.push_back(fmt::format("{}={}", name, value));
  };
  set(kTraceVariable, folder_.string());
  set(kTraceWhatVariable, what);
  const std::string library = options_.inject_library.string();
  if (options_.kernels) {
    const auto cuda = environment(kCudaVariable);
    const auto nvtx = environment(kNvtxVariable);
    if (is_others(cuda, options_.inject_library)) {
      injected_ = false;
      warnings.push_back(fmt::format(
          "kernels are not traced: {} is set to {}, another tool's library, and CUDA loads only "
          "one; to get kernels, unset it and run without that tool",
          kCudaVariable, *cuda));
    } else {
      set(kCudaVariable, library);
    }
    if (!is_others(nvtx, options_.inject_library)) {
      set(kNvtxVariable, library);
    } else if (injected_) {
      warnings.push_back(fmt::format(
          "NVTX ranges are not traced: {} is set to {}, another tool's library; to get them, unset "
          "it",
          kNvtxVariable, *nvtx));
    }
  }
  if (options_.kernels) set_rocprofiler(environment, all, warnings);
  if (options_.replay_seconds) set(kReplayVariable, fmt::format("{}", *options_.replay_seconds));
  if (!options_.python_hook.empty()) {
    set(kInjectVariable, library);
    const auto before = environment("PYTHONPATH");
    set("PYTHONPATH", options_.python_hook.string() +
                          (before && !before->empty() ? ":" + *before : std::string()));
  }
  return all;
}

// Programs that use no ROCm do not read these variables.
void TraceWatch::set_rocprofiler(const Environment& environment, std::vector<std::string>& all,
                                 std::vector<std::string>& warnings) {
  const auto chosen = environment(kRocmChoiceVariable);
  if (chosen && chosen->empty()) return;  // the user wants none
  const fs::path root = environment("JOULEPROF_ROOT").value_or("/");
  std::error_code err;
  if (!chosen && !fs::exists(root / "dev/kfd", err)) return;  // no board of AMD's for computing
  const std::string before = environment(kRocmRegisterVariable).value_or("");
  const bool is_named = chosen || !before.empty();
  const fs::path library = !before.empty() ? fs::path(before)
                           : chosen        ? fs::path(*chosen)
                                           : find_rocprofiler(environment, root);
  if (!fs::is_regular_file(library, err)) {
    const bool has_others = !chosen && fs::exists(root / "dev/nvidiactl", err);
    if (!has_others) {
      warnings.push_back(fmt::format(
          "kernels of AMD GPUs are not traced: {} was not found; install rocprofiler-sdk of ROCm "
          "6.4 or newer, or set {} to its path",
          library.empty() ? "librocprofiler-sdk.so" : library.string(), kRocmChoiceVariable));
    }
    return;
  }
  // A runtime that cannot load it aborts its program, too. What the user names is taken as it is.
  if (!is_named) {
    if (const std::string missing = missing_of(library); !missing.empty()) {
      warnings.push_back(
          fmt::format("kernels of AMD GPUs are not traced: {} cannot be loaded here: {}; repair "
                      "ROCm, or set {} to the library of the program's own ROCm",
                      library.string(), missing, kRocmChoiceVariable));
      return;
    }
  }
  rocm_ = true;
  const auto others = environment(kRocmToolsVariable);
  const std::string ours = options_.inject_library.string();
  const bool is_there = others && others->find(ours) != std::string::npos;
  all.push_back(fmt::format("{}={}", kRocmToolsVariable,
                            is_there                     ? *others
                            : others && !others->empty() ? ours + ":" + *others
                                                         : ours));
  all.push_back(fmt::format("{}={}", kRocmRegisterVariable, library.string()));
}

void TraceWatch::remove_taken() {
  if (own_) reader_.remove_taken();
}

void TraceWatch::take(std::vector<Batch::TracePart>& parts, std::vector<std::string>& warnings) {
  if (auto polled = reader_.poll(*collector_); !polled) {
    warnings.push_back(
        fmt::format("the rest of the trace cannot be read: {}", polled.error().message));
  }
  collector_->take(reader_, parts);
  std::ranges::move(collector_->warnings, std::back_inserter(warnings));
  collector_->warnings.clear();
}

void TraceWatch::take_rest(std::vector<Batch::TracePart>& parts, std::vector<std::string>& warnings,
                           Duration patience) {
  // Whose folder it is says when it is complete, and may go on tracing.
  const HostTime last = HostClock::now() + (own_ ? patience : Duration{});
  for (;;) {
    // Asked before the reading: what a process wrote before its death is there to be read.
    const auto open = reader_.open_processes();
    const bool more_to_come = std::ranges::any_of(open, is_alive);
    take(parts, warnings);
    if (!more_to_come && reader_.open_processes() == open) break;
    if (HostClock::now() >= last) break;
    std::this_thread::sleep_for(kLookAgain);
  }
  explain(warnings);
}

// A user who requested kernels and gets none needs the reason.
void TraceWatch::explain(std::vector<std::string>& warnings) const {
  std::uint64_t activities = 0;
  for (const auto& traced : collector_->all) {
    const model::Trace& trace = traced.sink.trace;
    activities += trace.status.activities;
    if (trace.status.problem.empty()) continue;
    warnings.push_back(
        fmt::format("{} (pid {}): {}", trace.program, trace.pid, trace.status.problem));
  }
  if (own_ && reader_.damaged()) {
    warnings.push_back(
        fmt::format("the damaged part of the trace is kept in {}", folder_.string()));
  }
  if (!own_ || !injected_) return;
  const bool only_serving = options_.serving && !options_.kernels && !options_.layers;
  if (only_serving && collector_->all.empty()) {
    warnings.push_back(
        "no steps were recorded: no process of the command opened a jouleprof.serving.Recorder, as "
        "the adapters of docs/serving.md do");
  } else if (only_serving) {
    return;
  } else if (collector_->all.empty()) {
    warnings.push_back(fmt::format(
        "nothing was traced: no {} ran that could be; a program that is statically linked to CUDA, "
        "runs as another user, or drops its environment (sudo, containers, remote workers) cannot "
        "be traced",
        !options_.kernels ? "Python program that uses PyTorch"
        : rocm_           ? "program that uses CUDA or ROCm"
                          : "program that uses CUDA"));
  } else if (options_.kernels && activities == 0) {
    const bool reported = std::ranges::any_of(
        collector_->all, [](const auto& t) { return !t.sink.trace.status.problem.empty(); });
    if (!reported) warnings.push_back("no kernels were traced: the program launched none");
  }
}

std::optional<std::string> TraceWatch::close(bool recorded) {
  if (!own_) return std::nullopt;
  if (!recorded || reader_.damaged()) {
    return fmt::format("what is left of the trace is kept in {}", folder_.string());
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  return std::nullopt;
}

}  // namespace jouleprof::session
