#include <errno.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "session/run/trace_watch.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

// Longer than the program waits for a pause and re-runs kernels (apps/inject/replay.cpp).
constexpr double kPatience = 120;

// The folder in which the process has its spool; its environment at its start names it.
Result<fs::path> spool_of(long long pid) {
  const auto text = read_file(fmt::format("/proc/{}/environ", pid));
  if (!text) {
    return fail(text.error().code, fmt::format("no process {} that this user may look into: {}",
                                               pid, text.error().message));
  }
  const std::string prefix = fmt::format("{}=", session::kTraceVariable);
  bool replays = false;
  std::string folder;
  for (const std::string_view variable : split(*text, '\0')) {
    if (variable.starts_with(prefix)) folder = variable.substr(prefix.size());
    replays = replays || variable.starts_with(fmt::format("{}=", session::kReplayVariable));
  }
  if (folder.empty() || !replays) {
    return fail(Errc::kUnavailable,
                fmt::format("process {} records no launches; start its program with `jouleprof run "
                            "--kernels --replay -- ...`",
                            pid));
  }
  return fs::path(folder);
}

class ReplayVerb : public Verb {
 public:
  std::string_view name() const override { return "replay"; }

  void declare(CLI::App& app) override {
    add(app, "--pid", pid_)->required()->check(above_zero());
    add(app, "--quiet", quiet_);
  }

  int run(const std::vector<std::string>& command) override {
    if (!command.empty()) {
      return complain_of_usage("replay has no command: it asks a running one");
    }
    const auto folder = spool_of(pid_);
    if (!folder) {
      const bool is_there = folder.error().code == Errc::kUnavailable;
      return complain(folder.error(),
                      is_there ? kNothingToMeasure : status_of_input(folder.error()));
    }
    const fs::path request = *folder / fmt::format("replay.{}", pid_);
    const fs::path answer = request.string() + ".done";
    std::error_code ignored;
    fs::remove(answer, ignored);
    if (!std::ofstream(request)) {
      return complain(system_error(fmt::format("cannot write {}", request.string()), errno),
                      kCannotWrite);
    }
    if (!quiet_) say("jouleprof: waits until process {} pauses, then re-runs its kernels\n", pid_);
    const HostTime begin = HostClock::now();
    while (!fs::exists(answer, ignored)) {
      const bool gone = kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH;
      if (gone || seconds(HostClock::now() - begin) > kPatience) {
        fs::remove(request, ignored);
        return complain(
            {gone ? Errc::kNotFound : Errc::kTimeout,
             gone ? fmt::format("process {} has ended", pid_)
                  : fmt::format("process {} did not answer within {:.0f} s: it has not used a GPU "
                                "yet, or it is stopped",
                                pid_, kPatience)},
            kNothingToMeasure);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    const auto said = read_file(answer);
    fs::remove(answer, ignored);
    if (!said) return complain(said.error(), kInternalError);
    const std::string text(trim(*said));
    if (text.starts_with("no ")) return complain({Errc::kUnavailable, text}, kNothingToMeasure);
    if (!quiet_) say("jouleprof: {}\n", text);
    return kDone;
  }

 private:
  long long pid_ = 0;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_replay() { return std::make_unique<ReplayVerb>(); }

}  // namespace jouleprof::cli
