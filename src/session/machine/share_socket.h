// The socket at which a service shares its sensors.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/result.h"

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

}  // namespace jouleprof::session
