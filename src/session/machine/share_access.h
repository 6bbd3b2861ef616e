// The socket at which a service shares its sensors.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "base/result.h"
#include "meters/shared/service_protocol.h"

namespace jouleprof::session {

struct ShareAccess {
  std::filesystem::path path;
  mode_t mode = 0600;
  std::optional<gid_t> group;
};

// Listens until it is destroyed; then the file is gone.
class ShareSocket {
 public:
  // A socket that a killed service left is replaced. Its folder, and the one above, are made where
  // they are absent, for this user alone. Errors: unavailable; invalid_argument where another
  // service listens or the path is another kind of file.
  static Result<ShareSocket> create(const ShareAccess& access);
  ShareSocket(ShareSocket&& other) noexcept;
  ShareSocket& operator=(ShareSocket&&) = delete;
  ShareSocket(const ShareSocket&) = delete;
  ~ShareSocket();

  int fd() const { return fd_; }

 private:
  ShareSocket(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

// Which uses of GPUs a user may see.

// The effective user of a process; absent where it cannot be read.
std::optional<uid_t> user_of(pid_t pid, const std::filesystem::path& root);

// Those of the processes of `user`, and those of all others on a GPU at a time as one with pid 0:
// its utilisation and memory are sums, absent where a part is unknown. Root sees all.
meters::GpuUses uses_seen_by(uid_t user, const meters::GpuUses& uses,
                             const std::function<std::optional<uid_t>(pid_t)>& user_of);

}  // namespace jouleprof::session
