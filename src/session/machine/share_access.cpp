#include "session/machine/share_access.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

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

// Makes way for a new socket.
Result<void> remove_left(const fs::path& path) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() != fs::file_type::socket) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot share the sensors: {} is not a socket", path.string()));
  }
  const auto connected = connect_locally(path, "");
  if (connected) ::close(*connected);
  if (connected || connected.error().code != Errc::kNotFound) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot share the sensors: another service listens on {}; choose "
                            "another path with --share, or --share off",
                            path.string()));
  }
  if (::unlink(path.c_str()) != 0) return cannot(path.string(), errno);
  return {};
}

}  // namespace

Result<ShareSocket> ShareSocket::create(const ShareAccess& access) {
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
  ShareSocket socket(path, *fd);
  if (access.group && ::chown(path.c_str(), static_cast<uid_t>(-1), *access.group) != 0) {
    return cannot(fmt::format("cannot give {} to group {} (is the service a member of it?)",
                              path.string(), *access.group),
                  errno);
  }
  if (::chmod(path.c_str(), access.mode) != 0) return cannot(path.string(), errno);
  return socket;
}

ShareSocket::ShareSocket(ShareSocket&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

ShareSocket::~ShareSocket() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
}

namespace {

template <typename T>
std::optional<T> sum_of(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::optional<T>(*a + *b) : std::nullopt;
}

}  // namespace

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
