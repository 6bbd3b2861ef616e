#include "session/run/job_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>

#include "base/file.h"
#include "base/process/local_socket.h"
#include "base/text.h"
#include "meters/shared/shared_meter.h"
#include "session/run/measured_processes.h"
#include "session/run/signals.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Duration kIdlePatience = 10min;  // the recorder measures idle power first
constexpr Duration kLeavePatience = 5s;
constexpr const char* kStarting = "starting";  // in place of a socket
constexpr auto kLateness = 1h;  // of a job's process that starts after others have ended

std::string text_of(const spans::Variable& variable, const char* name) {
  const char* value = variable(name);
  return value != nullptr ? value : "";
}

fs::path file_of(const fs::path& folder, const std::string& key) {
  return folder /
         fmt::format("jouleprof-job-{}-{:016x}", ::geteuid(), std::hash<std::string>{}(key));
}

// A file of this user that no other user can write to; none: errno says why.
Descriptor open_own(const fs::path& path, int flags) {
  Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat info {};
  if (!fd || (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
              info.st_uid == ::geteuid() && (info.st_mode & 077) == 0)) {
    return fd;
  }
  fd.close();
  errno = EPERM;
  return fd;
}

// What a recorder publishes, each on a line of its own.
struct Published {
  fs::path socket;  // empty: it has ended
  fs::path recording;
  std::string launcher;
};

// Empty where it is not whole.
Published read_published(int fd) {
  std::string text(2 * 4096 + 2, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  const auto lines = split(text, '\n');
  if (lines.size() < 4) return {};  // what follows the third line's end is of an older text
  return {fs::path(lines[0]), fs::path(lines[1]), std::string(lines[2])};
}

// Separates jobs of one key: the run id and address of torchrun are often those of the last job.
// Slurm's number of the step is of one job only.
std::string launcher_here() {
  const model::Rank rank = spans::rank_of();
  return rank.job.empty() ? std::to_string(::getppid()) : "slurm";
}

// Removes what recorders left that ended long ago.
void tidy(const fs::path& folder) {
  const std::string own = fmt::format("jouleprof-job-{}-", ::geteuid());
  const auto old = fs::file_time_type::clock::now() - kLateness;
  for (const auto& name : names_in(folder)) {
    if (!name.starts_with(own)) continue;
    const fs::path file = folder / name;
    std::error_code ignored;
    const auto written = fs::last_write_time(file, ignored);
    if (ignored || written > old) continue;
    const Descriptor fd = open_own(file, O_RDWR);
    if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(file.c_str());
  }
}

// Whether the path still leads to the open file: the recorder before may have removed it.
bool is_at(int fd, const fs::path& path) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

bool wait_for(int fd, HostTime deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - HostClock::now());
    if (left.count() <= 0) return false;
    pollfd poll{fd, POLLIN, 0};
    const int n = ::poll(&poll, 1, static_cast<int>(left.count()));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

bool has_ended(int fd) {
  pollfd poll{fd, POLLIN, 0};
  if (::poll(&poll, 1, 0) <= 0) return false;
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 || (poll.revents & POLLHUP) != 0;
}

// The boards that a process with this environment can see.
std::vector<model::DomainId> visible_of(const std::vector<meters::OfferedDomain>& offered,
                                        const Environment& environment) {
  std::vector<model::Domain> domains;
  for (const auto& each : offered) domains.push_back(each.domain);
  apply_visibility(domains, environment);
  std::vector<model::DomainId> visible;
  for (const auto& domain : domains) {
    if (domain.visible) visible.push_back(domain.id);
  }
  return visible;
}

}  // namespace

std::string job_key(const spans::Variable& variable) {
  const model::Rank rank = spans::rank_of(variable);
  if (!rank.global || rank.world_size == 1U) return {};
  std::string key = spans::boot_id();
  const std::string elastic = text_of(variable, "TORCHELASTIC_RUN_ID");
  if (!rank.job.empty() && !rank.step.empty()) {
    key += fmt::format("/slurm/{}/{}", rank.job, rank.step);
  } else if (rank.launcher == "torchrun" && !elastic.empty()) {
    key += fmt::format("/torchrun/{}/{}:{}", elastic, text_of(variable, "MASTER_ADDR"),
                       text_of(variable, "MASTER_PORT"));
  } else {
    // All processes of a job on a host have the launcher's daemon as parent.
    key += fmt::format("/{}/{}", rank.launcher, ::getppid());
  }
  return key;
}

Result<std::optional<RecorderLock>> RecorderLock::take(const fs::path& folder,
                                                       const std::string& key) {
  const fs::path path = file_of(folder, key);
  for (;;) {
    Descriptor fd = open_own(path, O_RDWR | O_CREAT);
    if (!fd) {
      Error error = system_error("cannot open " + path.string(), errno);
      error.code = Errc::kUnavailable;
      return tl::unexpected(std::move(error));
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return std::optional<RecorderLock>();
    if (!is_at(fd.get(), path)) continue;
    const Published before = read_published(fd.get());
    RecorderLock lock(path, std::move(fd));
    if (before.launcher == launcher_here()) {
      lock.left_ = {before.recording, !before.socket.empty()};
    }
    // Until this one announces its own recording: it may be killed before it has one.
    if (lock.left_.recording.empty()) {
      (void)!::ftruncate(lock.fd_.get(), 0);
    } else if (lock.left_.was_killed) {
      lock.write(kStarting, lock.left_.recording);
    }
    tidy(folder);
    return std::optional<RecorderLock>(std::move(lock));
  }
}

fs::path RecorderLock::socket(const fs::path& folder, const std::string& key) {
  const Descriptor fd = open_own(file_of(folder, key), O_RDONLY);
  if (!fd) return {};
  const auto published = read_published(fd.get());
  return published.socket == kStarting ? fs::path() : published.socket;
}

RecorderLock::~RecorderLock() {
  if (!fd_) return;
  const fs::path& known = recording_.empty() ? left_.recording : recording_;
  if (known.empty()) {
    ::unlink(path_.c_str());
  } else {
    write({}, known);
  }
}

void RecorderLock::announce(const fs::path& recording) {
  recording_ = recording;
  write(kStarting, recording_);
}

void RecorderLock::publish(const fs::path& socket, const fs::path& recording) {
  recording_ = recording;
  write(socket, recording_);
}

void RecorderLock::write(const fs::path& socket, const fs::path& recording) const {
  const std::string lines =
      fmt::format("{}\n{}\n{}\n", socket.string(), recording.string(), launcher_here());
  // In this order a death in between leaves all that is read.
  (void)!::pwrite(fd_.get(), lines.data(), lines.size(), 0);
  (void)!::ftruncate(fd_.get(), static_cast<off_t>(lines.size()));
}

fs::path recorder_folder() {
  const fs::path shared = "/dev/shm";
  return ::access(shared.c_str(), W_OK) == 0 ? shared : fs::path("/tmp");
}

Result<Membership> join_recorder(const fs::path& socket, const Environment& environment) {
  auto link = meters::HubLink::connect(socket, {.readings = false});
  if (!link) return forward_error(link);
  Membership made;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(link->fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    made.recorder = peer.pid;
  }
  if (auto sent = link->send(meters::Join{visible_of(link->domains(), environment)}); !sent) {
    return forward_error(sent);
  }
  auto answer = link->receive(HostClock::now() + kIdlePatience);
  if (!answer) return forward_error(answer);
  if (!*answer) return fail(Errc::kTimeout, "the recorder does not answer");
  auto* joined = std::get_if<meters::Joined>(&**answer);
  if (joined == nullptr) return fail(Errc::kUnsupported, "the recorder gave another answer");
  made.recording = std::move(joined->recording);
  made.variables = std::move(joined->variables);
  made.fd = Descriptor(link->release());
  return made;
}

Result<JoinedResult> run_joined(const std::vector<std::string>& command, Membership membership,
                                const Succeed& succeed) {
  Descriptor fd = std::move(membership.fd);
  auto signals = SignalStream::create();
  if (!signals) return forward_error(signals);
  // Orphans of the command stay below this process, which the recorder follows.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto child = Child::prepare(command, **signals, membership.variables);
  if (!child) return forward_error(child);
  JoinedResult result;
  if (const auto failure = child->release()) {
    result.exit_status = failure->exit_status;
    result.start_error = failure->error;
    return result;
  }
  bool is_member = true;
  while (!child->has_ended()) {
    while (const auto signal = (*signals)->next()) {
      if (signal->sent) child->send(signal->number);
      if (signal->number == SIGTSTP) (*signals)->stop_self();
    }
    if (child->has_ended()) break;
    if (is_member && has_ended(fd.get())) {
      is_member = false;
      auto next = succeed ? succeed(child->pid(), *signals) : Succession{};
      result.was_recorded = next.was_recorded || next.membership.has_value();
      if (*signals == nullptr) break;  // a session of this process lasted until the command's end
      if (next.membership) {
        fd = std::move(next.membership->fd);
        is_member = true;
      }
    }
    (*signals)->wait(HostClock::now() + 1h, is_member ? fd.get() : -1);
  }
  // It is still readable: the recorder takes its last figures, and then ends the connection.
  if (is_member) {
    result.was_recorded =
        !has_ended(fd.get()) &&
        send_with_descriptor(fd.get(), encode(meters::ProgramMessage(meters::Leave{})), -1);
    if (result.was_recorded) (void)wait_for(fd.get(), HostClock::now() + kLeavePatience);
  }
  result.exit_status = child->reap();
  return result;
}

}  // namespace jouleprof::session
