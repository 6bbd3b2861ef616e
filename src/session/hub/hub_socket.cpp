#include "session/hub/hub_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/local_socket.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> cannot(const std::string& what, int err) {
  Error error = system_error("cannot share the sensors: " + what, err);
  error.code = Errc::kUnavailable;
  return tl::unexpected(std::move(error));
}

// Whether no process listens on a socket that may be there.
bool is_free(const fs::path& path) {
  const auto connected = connect_locally(path, "");
  if (connected) disconnect(*connected);
  return !connected && connected.error().code == Errc::kNotFound;
}

// Makes way for a new socket.
Result<void> remove_left(const fs::path& path) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() != fs::file_type::socket) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot share the sensors: {} is not a socket", path.string()));
  }
  if (!is_free(path)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot share the sensors: another service listens on {}; choose "
                            "another path with --share, or --share off",
                            path.string()));
  }
  if (::unlink(path.c_str()) != 0) return cannot(path.string(), errno);
  return {};
}

constexpr std::string_view kPrefix = "jouleprof-";
constexpr std::size_t kRandomLetters = 6;

Descriptor open_folder(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_name_of_ours(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kRandomLetters) return false;
  name.remove_prefix(kPrefix.size());
  return std::ranges::all_of(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

bool is_old_and_mine(int folder, Duration age) {
  struct stat about {};
  if (::fstat(folder, &about) != 0 || about.st_uid != ::geteuid()) return false;
  const RealTime changed{std::chrono::seconds{about.st_mtim.tv_sec}};
  return RealClock::now() - changed >= age;
}

void remove_if_dead(const fs::path& path, Duration age) {
  const Descriptor folder = open_folder(path);
  if (folder && is_old_and_mine(folder.get(), age) &&
      ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 && is_free(path / "session")) {
    ::unlinkat(folder.get(), "session", 0);
    ::rmdir(path.c_str());  // fails where there is anything else in it
  }
}

template <typename T>
std::optional<T> sum_of(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::optional<T>(*a + *b) : std::nullopt;
}

}  // namespace

Result<HubSocket> HubSocket::create(const ShareAccess& access) {
  const fs::path& path = access.path;
  const fs::path folder = path.parent_path();
  std::error_code ignored;
  for (const fs::path& each : {folder.parent_path(), folder}) {
    if (each.empty() || each == "/" || fs::exists(each, ignored)) continue;
    if (::mkdir(each.c_str(), 0700) != 0 && errno != EEXIST) {
      return cannot("cannot make the folder " + each.string(), errno);
    }
  }
  if (auto removed = remove_left(path); !removed) return forward_error(removed);
  // No program may connect before group and mode are set.
  const mode_t mask = ::umask(0777);
  const auto fd = listen_locally(path);
  ::umask(mask);
  if (!fd) {
    return fail(Errc::kUnavailable, "cannot share the sensors: " + fd.error().message);
  }
  HubSocket socket(path, Descriptor(*fd));
  if (access.group && ::chown(path.c_str(), static_cast<uid_t>(-1), *access.group) != 0) {
    return cannot(fmt::format("cannot give {} to group {} (is the service a member of it?)",
                              path.string(), *access.group),
                  errno);
  }
  if (::chmod(path.c_str(), access.mode) != 0) return cannot(path.string(), errno);
  return socket;
}

Result<HubSocket> HubSocket::in_session_folder() {
  Error error{Errc::kUnavailable, "there is no folder for a socket"};
  for (const char* parent : std::initializer_list<const char*>{::getenv("XDG_RUNTIME_DIR"),
                                                               ::getenv("TMPDIR"), "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    SessionFolder::remove_dead(parent);
    auto folder = SessionFolder::create(parent);
    const auto fd = folder ? listen_locally(folder->socket()) : Result<int>(forward_error(folder));
    if (!fd) {
      error = fd.error();
      continue;
    }
    HubSocket socket(folder->socket(), Descriptor(*fd));
    socket.folder_.emplace(std::move(*folder));
    return socket;
  }
  return tl::unexpected(std::move(error));
}

HubSocket::~HubSocket() {
  if (!fd_) return;
  fd_.close();
  ::unlink(path_.c_str());
}

Result<SessionFolder> SessionFolder::create(const fs::path& parent) {
  std::string made = (parent / kPrefix).string() + std::string(kRandomLetters, 'X');
  if (::mkdtemp(made.data()) == nullptr) {
    Error error = system_error("cannot make the folder " + made, errno);
    error.code = Errc::kUnavailable;
    return tl::unexpected(std::move(error));
  }
  Descriptor lock = open_folder(made);
  if (lock) ::flock(lock.get(), LOCK_EX | LOCK_NB);
  return SessionFolder(made, std::move(lock));
}

SessionFolder::SessionFolder(SessionFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

SessionFolder::~SessionFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove(socket(), ignored);
  fs::remove(path_, ignored);
}

void SessionFolder::remove_dead(const fs::path& parent, Duration age) {
  const auto names = list_folder(parent);
  if (!names) return;
  for (const auto& name : *names) {
    if (is_name_of_ours(name)) remove_if_dead(parent / name, age);
  }
}

std::optional<uid_t> user_of(pid_t pid, const std::filesystem::path& root) {
  const auto text = read_file(root / fmt::format("proc/{}/status", pid));
  if (!text) return std::nullopt;
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    const auto fields = split(line, '\t');  // real, effective, saved, of the file system
    if (fields.size() < 3) return std::nullopt;
    const auto uid = parse_integer(fields[2]);
    return uid ? std::optional(static_cast<uid_t>(*uid)) : std::nullopt;
  }
  return std::nullopt;
}

meters::GpuUses uses_seen_by(uid_t user, const meters::GpuUses& uses,
                             const std::function<std::optional<uid_t>(pid_t)>& user_of) {
  if (user == 0) return uses;
  meters::GpuUses out;
  std::map<std::pair<model::DomainId, HostTime>, model::GpuProcessUse> others;
  for (const auto& use : uses) {
    if (user_of(use.pid) == user) {
      out.push_back(use);
      continue;
    }
    const auto [at, is_first] = others.try_emplace({use.domain, use.at}, use);
    auto& sum = at->second;
    sum.pid = 0;
    if (is_first) continue;
    sum.compute_utilisation = sum_of(sum.compute_utilisation, use.compute_utilisation);
    sum.memory_bytes = sum_of(sum.memory_bytes, use.memory_bytes);
  }
  for (const auto& [key, use] : others) out.push_back(use);
  return out;
}

}  // namespace jouleprof::session
