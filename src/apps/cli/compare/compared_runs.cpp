#include "apps/cli/compare/compared_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "analysis/compare/sides.h"
#include "apps/cli/measuring.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/process/last_resort.h"
#include "recording/reader.h"
#include "report/quantity.h"
#include "report/results/comparison.h"
#include "session/run/session.h"
#include "session/run/signals.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWarmUp = "warm-up";
constexpr unsigned kFewestPairs = 2;  // that can be compared
constexpr Duration kSettle = std::chrono::milliseconds{500};

// While it lives, what is written to stdout goes to stderr.
class StdoutToStderr {
 public:
  StdoutToStderr() {
    std::fflush(stdout);
    kept_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (kept_ >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() {
    if (kept_ < 0) return;
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }

 private:
  int kept_ = -1;
};

// The folder of the recordings; removed at the end where it is ours.
class Folder {
 public:
  static Result<Folder> open(const fs::path& chosen) {
    if (!chosen.empty()) {
      std::error_code failed;
      fs::create_directories(chosen, failed);
      if (failed) {
        return system_failure(fmt::format("cannot make the folder {}", chosen.string()),
                              failed.value());
      }
      // Also those that fewer pairs would leave: they are no runs of these commands.
      for (const auto& name : names_in(chosen)) {
        if (!name.ends_with(".jprof") ||
            !(name.starts_with("pair-") || name.starts_with(kWarmUp))) {
          continue;
        }
        return fail(Errc::kInvalidArgument,
                    fmt::format("--keep {}: the folder has {} of an earlier comparison; choose "
                                "another folder",
                                chosen.string(), name));
      }
      return Folder(chosen);
    }
    auto made = TemporaryFolder::create();
    if (!made) return forward_error(made);
    return Folder(std::move(*made));
  }
  const fs::path& path() const { return ours_ ? ours_->path() : chosen_; }

 private:
  explicit Folder(fs::path chosen) : chosen_(std::move(chosen)) {}
  explicit Folder(TemporaryFolder ours) : ours_(std::move(ours)) {}
  fs::path chosen_;
  std::optional<TemporaryFolder> ours_;
};

class PairRunner {
 public:
  PairRunner(const PairPlan& plan, const std::function<void(const std::string&)>& on_progress,
             const Folder& folder, int& status)
      : plan_(plan), on_progress_(on_progress), folder_(folder), status_(status) {}

  Result<PairRuns> run() {
    for (unsigned i = 0; i < plan_.warm_ups; ++i) {
      for (const bool after : {false, true}) {
        if (auto made = execute(after, kWarmUp); !made) return forward_error(made);
      }
    }
    PairRuns runs;
    for (unsigned pair = 0; pair < plan_.pairs; ++pair) {
      const bool after_first = analysis::is_after_first(pair);
      for (const bool after : {after_first, !after_first}) {
        auto made = execute(after, fmt::format("pair-{:03}", pair + 1));
        if (!made) {
          if (pair < kFewestPairs) return forward_error(made);
          runs.before.erase(runs.before.begin() + pair, runs.before.end());
          runs.after.erase(runs.after.begin() + pair, runs.after.end());
          runs.ended = made.error();
          return runs;
        }
        (after ? runs.after : runs.before).push_back(std::move(*made));
      }
      report(runs);
    }
    return runs;
  }

 private:
  void report(const PairRuns& runs) const {
    const auto& a = runs.before.back();
    const auto& b = runs.after.back();
    std::string change = "-";
    if (a.energy.value && b.energy.value) {
      change = report::change_text(*b.energy.value / *a.energy.value - 1);
    }
    on_progress_(fmt::format(
        "pair {:>3} of {}: before {} in {}, after {} in {}, energy {}", runs.before.size(),
        plan_.pairs, report::figure_text("energy", a.energy.value),
        report::figure_text("time", a.time.value), report::figure_text("energy", b.energy.value),
        report::figure_text("time", b.time.value), change));
  }

  Result<analysis::RunFigures> execute(bool after, const std::string& name) {
    const std::string file = fmt::format("{}-{}.jprof", name, after ? "after" : "before");
    const fs::path path = folder_.path() / file;
    const auto measured = measure(after ? plan_.after : plan_.before, path);
    auto recording = measured ? recording::read_recording(path)
                              : Result<model::Recording>(tl::unexpected(measured.error()));
    std::error_code ignored;
    if (plan_.keep.empty() || name == kWarmUp) fs::remove(path, ignored);
    if (!recording) return forward_error(recording);
    return analysis::figures_of(analysis::Run(std::move(*recording)), file, plan_.figures);
  }

  Result<void> measure(const std::vector<std::string>& command, const fs::path& path) {
    const auto by = plan_.figures.by;
    const bool layers = by == analysis::CompareBy::kLayer || by == analysis::CompareBy::kPhase;
    const bool traced = layers || by == analysis::CompareBy::kKernel;
    meters::MeterOptions meter_options;
    meter_options.demand.shortest_window = std::chrono::seconds{1};
    meter_options.use_service = true;
    meter_options.process_period = kProcessPeriod;
    auto meters = meters::open_meters(meter_options);
    if (!meters) return forward_error(meters);
    session::SessionOptions options;
    options.command = command;
    options.tool_version = JOULEPROF_VERSION;
    options.devices = plan_.devices;
    options.idle_before = options.idle_after = kSettle;
    if (traced) {
      options.trace.kernels = true;
      options.trace.layers = layers || plan_.replay_seconds;
      options.trace.replay_seconds = plan_.replay_seconds;
      if (auto found = find_trace_files(options.trace); !found) return forward_error(found);
      choose_clock_of_layers(*meters, options);
      options.trace.recording = path;
    }
    auto destination = Destination::file(path, true);
    if (!destination) return forward_error(destination);
    const StdoutToStderr redirected;
    const auto result = session::run(options, std::move(meters->meters), &destination->sink());
    if (!result) return forward_error(result);
    if (result->start_error) {
      status_ = result->exit_status.value_or(kNotStarted);
      return tl::unexpected(*result->start_error);
    }
    if (result->sink_error) return tl::unexpected(*result->sink_error);
    status_ = result->exit_status.value_or(kNotStarted);
    if (status_ == 0) return {};
    return fail(Errc::kUnavailable, fmt::format("{} {}; only runs that succeed are compared",
                                                command.front(), failure_text(status_)));
  }

  const PairPlan& plan_;
  const std::function<void(const std::string&)>& on_progress_;
  const Folder& folder_;
  int& status_;
};

bool is_file_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 100 &&
         name.find_first_of("/@\\") == std::string_view::npos &&
         std::ranges::all_of(name, [](unsigned char c) { return c >= ' '; });
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& name : names_in(folder)) {
    entries.push_back(folder / name);
  }
  return entries;
}

}  // namespace

Result<std::pair<std::vector<std::string>, std::vector<std::string>>> split_commands(
    const std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "---");
  if (dashes == words.begin() || dashes == words.end() || dashes + 1 == words.end()) {
    return fail(Errc::kInvalidArgument,
                "--pairs needs two commands: jouleprof compare --pairs 10 -- COMMAND BEFORE --- "
                "COMMAND AFTER");
  }
  return std::pair{std::vector<std::string>(words.begin(), dashes),
                   std::vector<std::string>(dashes + 1, words.end())};
}

Result<PairRuns> run_pairs(const PairPlan& plan,
                           const std::function<void(const std::string&)>& on_progress,
                           int& status) {
  const session::SignalsLater until_removed;
  const auto folder = Folder::open(plan.keep);
  if (!folder) return forward_error(folder);
  return PairRunner(plan, on_progress, *folder, status).run();
}

Result<Baselines> Baselines::of_user() {
  if (const auto data = user_folder("XDG_DATA_HOME", ".local/share"); !data.empty()) {
    return Baselines(data / "jouleprof" / "baselines");
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
  if (failed) return system_failure("cannot make " + folder.string(), failed.value());
  std::size_t number = sorted_entries(folder).size();
  for (const auto& recording : recordings) {
    fs::path to;
    do {
      to = folder / fmt::format("{:04}.jprof", ++number);
    } while (fs::exists(to));
    fs::copy_file(recording, to, failed);
    if (failed) {
      return system_failure(fmt::format("cannot copy {} to {}", recording.string(), to.string()),
                            failed.value());
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
  const auto newest = std::ranges::max_element(found, [](const fs::path& a, const fs::path& b) {
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
