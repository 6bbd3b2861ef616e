// The folder of a session's socket among the temporary files.
#pragma once

#include <chrono>
#include <filesystem>
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

}  // namespace jouleprof::session
