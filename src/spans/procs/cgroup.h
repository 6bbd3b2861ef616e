// Control groups: one made for a command, and the CPU time of all.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "model/process/process.h"
#include "spans/procs/owners.h"

namespace jouleprof::spans {

// A control group (cgroup v2) made for one command, so that membership of its processes is exact.
class Cgroup {
 public:
  // Makes the group `name` below this process's own group, where this user may do so: the
  // folder is writable, and under systemd it was delegated. No controller is switched on, so no
  // limit changes. Errors: unsupported (no cgroup v2, not delegated, own limits),
  // permission_denied, ...
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

// The CPU time of control groups, which includes that of processes too short to be listed.
// Of cgroup v2 (cpu.stat), or of v1's controller cpuacct (cpuacct.usage).
// Thread safety: none.
class CgroupTimes {
 public:
  explicit CgroupTimes(const std::filesystem::path& root = "/");

  // Keeps the group of a process and those above it that have an owner, and returns its key. Empty
  // for the root group, and where the group's time cannot be found: its processes have their own
  // times only. A group whose process `began` since the look before has all that it used since the
  // first look.
  std::string keep(const ProcessGroup& group, bool began);

  struct Group {
    model::Owner owner;
    Duration used{};            // since the look before, without that of kept groups below it
    bool is_new = false;        // `used` is not known yet
    std::size_t processes = 0;  // that its reader found in it
    Duration listed{};          // of these, since the look before
    Duration unlisted{};        // of none of them

   private:
    friend class CgroupTimes;
    std::unique_ptr<KeptFile> file;
    bool unified = false;
    std::optional<Duration> total;
    Duration whole{};    // as `used`, with groups below it
    Duration balance{};  // used by the group and not by its processes, and not reported yet
    Duration tolerance() const;
  };

  // Reads all groups. Those that are gone are forgotten. `busy`: of the machine, since the look
  // before.
  void read(Duration busy);
  Group* find(const std::string& key);
  // A process of the group used so much since the look before. What a new group used is still in
  // the time of the group above it.
  void list(const std::string& key, Duration used);
  void unlist(const std::string& key, Duration used);  // takes back what list() said of a process
  // How much of `used` the group can have used beyond what its listed processes did. Absent: the
  // group's time is unknown.
  std::optional<Duration> room(const std::string& key, Duration used);
  // Its processes used clearly more than it did: one of them is in another group by now.
  bool lacks_process(const std::string& key) const;
  // Computes `unlisted` of each group, once its processes are known.
  void settle();
  const std::map<std::string, Group>& all() const { return groups_; }

 private:
  struct Mount {
    std::string within;  // of the hierarchy, what is mounted
    std::filesystem::path at;
  };
  std::optional<Mount> unified_;
  std::optional<Mount> cpuacct_;
  Group* counting(const std::string& key);
  void divide();
  std::map<std::string, Group> groups_;
  std::optional<std::map<std::string, Duration>> at_first_;  // totals of all groups that used some
  Duration busy_{};
};

}  // namespace jouleprof::spans
