// The socket of a hub, the folder of one that is for the programs of a command alone, and what a
// user may see of others' uses.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/shared/hub_protocol.h"

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
  SessionFolder(std::filesystem::path path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;  // empty: moved from
  Descriptor lock_;
};

struct ShareAccess {
  std::filesystem::path path;
  mode_t mode = 0600;
  std::optional<gid_t> group;
};

// Listens until it is destroyed; then the file is gone.
class HubSocket {
 public:
  // A socket that a killed service left is replaced. Its folder, and the one above, are made where
  // they are absent, for this user alone. Errors: unavailable; invalid_argument where another
  // service listens or the path is another kind of file.
  static Result<HubSocket> create(const ShareAccess& access);
  // In a folder of its own, for this user alone, in XDG_RUNTIME_DIR, TMPDIR or /tmp, the first in
  // which that is possible. Removes there what sessions left that were killed. Errors: unavailable.
  static Result<HubSocket> in_session_folder();
  HubSocket(HubSocket&&) noexcept = default;
  HubSocket& operator=(HubSocket&&) = delete;
  HubSocket(const HubSocket&) = delete;
  ~HubSocket();

  int fd() const { return fd_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  HubSocket(std::filesystem::path path, Descriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::optional<SessionFolder> folder_;
  std::filesystem::path path_;
  Descriptor fd_;
};

// The effective user of a process; absent where it cannot be read.
std::optional<uid_t> user_of(pid_t pid, const std::filesystem::path& root);

// The uses that `user` may see: those of this user's processes, and those of all others on a GPU at
// a time as one with pid 0: its utilisation and memory are sums, absent where a part is unknown.
// Root sees all.
meters::GpuUses uses_seen_by(uid_t user, const meters::GpuUses& uses,
                             const std::function<std::optional<uid_t>(pid_t)>& user_of);

}  // namespace jouleprof::session
