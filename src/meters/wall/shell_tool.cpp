#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "meters/wall/wall_source.h"

namespace jouleprof::meters {
namespace {

constexpr std::string_view kMark = "jouleprof-answer";
constexpr std::size_t kLongestAnswer = std::size_t{1} << 16;

// $1: the command; $2: the mark; $3: seconds. What the command says on stderr counts only where it
// fails.
constexpr const char* kLoop =
    "exec 3>&1\n"
    "while IFS= read -r n; do\n"
    "  e=$(timeout -k 1 \"$3\" sh -c \"$1\" 2>&1 >&3 </dev/null); s=$?\n"
    "  [ \"$s\" = 0 ] || printf '\\n%s' \"$e\"\n"
    "  printf '\\n%s %s %s\\n' \"$2\" \"$n\" \"$s\"\n"
    "done\n";

constexpr int kTimeoutStatus = 124;

}  // namespace

Result<std::unique_ptr<ShellTool>> ShellTool::start(const std::string& command, Duration patience) {
  std::unique_ptr<ShellTool> tool(new ShellTool(command, patience));
  Descriptor requests;
  Descriptor answers;
  if (!make_pipe(requests, tool->requests_) || !make_pipe(tool->answers_, answers)) {
    return system_failure("cannot open a pipe", errno);
  }
  std::string seconds_text = fmt::format(
      "{}", std::max<long long>(
                1, std::chrono::duration_cast<std::chrono::seconds>(patience).count() - 1));
  std::array<std::string, 7> words{
      "sh", "-c", kLoop, "sh", command, std::string(kMark), std::move(seconds_text)};
  std::array<char*, 8> argv{};
  std::ranges::transform(words, argv.begin(), [](auto& word) { return word.data(); });
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A group of its own: Ctrl-C is for the measured command, and all of the group can be ended.
    ::setpgid(0, 0);
    // What the command leaves running becomes the shell's child, not the tool's, whose orphans
    // are the measured command's.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(requests.get(), 0);
    ::dup2(answers.get(), 1);
    ::dup2(::open("/dev/null", O_WRONLY), 2);
    ::execv("/bin/sh", argv.data());
    ::_exit(127);
  }
  if (pid < 0) return system_failure("cannot start /bin/sh", errno);
  ::setpgid(pid, pid);  // in both: which comes first is not known
  tool->shell_ = pid;
  ::fcntl(tool->answers_.get(), F_SETFL, O_NONBLOCK);
  return tool;
}

ShellTool::~ShellTool() {
  if (shell_ <= 0) return;
  ::kill(-shell_, SIGKILL);
  while (::waitpid(shell_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> ShellTool::run() {
  const std::string request = fmt::format("{}\n", ++last_);
  if (::write(requests_.get(), request.data(), request.size()) !=
      static_cast<ssize_t>(request.size())) {
    return fail(Errc::kUnavailable, fmt::format("'{}' cannot be run: its shell is gone", command_));
  }
  const HostTime end = HostClock::now() + patience_ + std::chrono::seconds{1};
  const std::string mark = fmt::format("\n{} {} ", kMark, last_);
  while (true) {
    const auto at = pending_.find(mark);
    const auto line_end = at == std::string::npos ? at : pending_.find('\n', at + mark.size());
    if (line_end != std::string::npos) {
      const auto status_at = at + mark.size();
      const auto status = parse_integer(pending_.substr(status_at, line_end - status_at));
      // Answers to earlier requests, which came too late, are before it.
      std::string text = pending_.substr(0, at);
      if (const auto earlier = text.rfind(fmt::format("\n{} ", kMark));
          earlier != std::string::npos) {
        const auto begin = text.find('\n', earlier + 1);
        text = begin == std::string::npos ? "" : text.substr(begin + 1);
      }
      pending_.erase(0, line_end + 1);
      text = std::string(trim(text));
      if (status == 0) return text;
      if (status == kTimeoutStatus || status == 137) {
        return fail(Errc::kTimeout, fmt::format("'{}' did not end in time", command_));
      }
      return fail(Errc::kUnavailable,
                  fmt::format("'{}' ends with status {}{}{}", command_, status.value_or(-1),
                              text.empty() ? "" : ": ", text.substr(0, text.find('\n'))));
    }
    if (pending_.size() > kLongestAnswer) pending_.erase(0, pending_.size() - kLongestAnswer / 2);
    pollfd waiting{answers_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(Errc::kTimeout, fmt::format("'{}' does not end", command_));
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(answers_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      pending_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return fail(Errc::kUnavailable,
                  fmt::format("'{}' cannot be run: its shell is gone", command_));
    }
  }
}

}  // namespace jouleprof::meters
