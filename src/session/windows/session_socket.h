// Where the programs of a session find it: a Unix socket in a folder of its own.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace jouleprof::session {

// Only this user can reach it. Folder and socket are removed in the end.
class SessionSocket {
 public:
  // In XDG_RUNTIME_DIR, TMPDIR or /tmp, whichever is the first that will do. It listens and does
  // not block. Errors: unavailable.
  static Result<SessionSocket> create();
  SessionSocket(SessionSocket&& other) noexcept;
  SessionSocket& operator=(SessionSocket&&) = delete;
  SessionSocket(const SessionSocket&) = delete;
  ~SessionSocket();

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  SessionSocket(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;  // empty: moved from
  int fd_ = -1;
};

// A connected socket to `path`, for packets; it does not block. A tool that is stopped is given up
// after two seconds. Errors: unavailable.
Result<int> connect_to_session(const std::filesystem::path& path);

}  // namespace jouleprof::session
