// A control group (cgroup v2) made for one command, so that membership of its processes is exact.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::spans {

class Cgroup {
 public:
  // Makes the group `name` below this process's own group, where this user may do so: the
  // folder is writable, and under systemd it was delegated. No controller is switched on, so no
  // limit changes. Errors: unsupported (no cgroup v2, not delegated), permission_denied, ...
  static Result<Cgroup> create(const std::string& name, const std::filesystem::path& root = "/");

  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  // Puts processes that still live back where they came from and removes the group.
  ~Cgroup();

  // Moves a process into the group.
  Result<void> add(pid_t pid) const;

  // Appends the processes in it and in groups that they made below it. Without zombies.
  void list(std::vector<pid_t>& out) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit Cgroup(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace jouleprof::spans
