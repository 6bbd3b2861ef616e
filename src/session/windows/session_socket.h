// The folder of a session's socket among the temporary files.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::session {

// "jouleprof-XXXXXX", which only this user can open. Its owner holds a lock on it, which the system
// releases when the owner dies; so a later session can recognise and remove what it left.
class SessionFolder {
 public:
  // Errors: unavailable.
  static Result<SessionFolder> create(const std::filesystem::path& parent);
  SessionFolder(SessionFolder&& other) noexcept;
  SessionFolder& operator=(SessionFolder&&) = delete;
  SessionFolder(const SessionFolder&) = delete;
  ~SessionFolder();  // removes folder and socket

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path socket() const { return path_ / "session"; }

  // Removes the folders in `parent` whose owners are dead: those of this user that are not locked,
  // are older than `age` and hold nothing but a socket on which no process listens.
  static void remove_dead(const std::filesystem::path& parent,
                          Duration age = std::chrono::minutes{1});

 private:
  SessionFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty: moved from
  int lock_ = -1;
};

// Where the programs of a session find it: a Unix socket in a folder of its own.

// Only this user can reach it.
class SessionSocket {
 public:
  // In XDG_RUNTIME_DIR, TMPDIR or /tmp, the first in which that is possible. It listens and does
  // not block. Removes there what sessions left that were killed. Errors: unavailable.
  static Result<SessionSocket> create();
  SessionSocket(SessionSocket&& other) noexcept;
  SessionSocket& operator=(SessionSocket&&) = delete;
  SessionSocket(const SessionSocket&) = delete;
  ~SessionSocket();

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  SessionSocket(SessionFolder folder, int fd)
      : folder_(std::move(folder)), path_(folder_.socket()), fd_(fd) {}

  SessionFolder folder_;
  std::filesystem::path path_;
  int fd_ = -1;
};

// A connected socket to `path`, for packets; it does not block. Waits two seconds at most
// for a tool that is stopped. Errors: unavailable.
Result<int> connect_to_session(const std::filesystem::path& path);

// One packet, with a file descriptor that the receiver gets a copy of; -1: none. False: not sent.
bool send_with_descriptor(int socket, std::string packet, int descriptor);
// One packet into `buffer`, as recv() with MSG_DONTWAIT and MSG_TRUNC; `descriptor`: the one that
// came with it, to be closed by the caller, or -1.
ssize_t receive_with_descriptor(int socket, std::string& buffer, int& descriptor);

}  // namespace jouleprof::session
