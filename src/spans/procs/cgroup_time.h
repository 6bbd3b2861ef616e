// Who is behind a control group: the naming rules of container runtimes, kubelet, schedulers and
// systemd.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "model/process/process.h"

namespace jouleprof::spans {

// The owner that a path within a cgroup hierarchy names. The deepest container, pod, job and unit
// win, so that a cluster in a container (kind) and a container in a job are found. `user` is that
// of the path (user-1000.slice), not of the process. Below user@UID.service, where that user names
// the groups, nothing is read: the unit is user@UID.service. Of a system's account (UID below 1000)
// the jobs of Flux are.
model::Owner owner_of_cgroup_path(std::string_view path);

// What one process's /proc/PID/cgroup says.
struct ProcessGroup {
  model::Owner owner;
  // The group that counts its CPU time, as a path within the hierarchy: that of cgroup v2, or of
  // the controller cpuacct. Empty where it has neither.
  std::string path;
  bool unified = false;  // `path` is one of cgroup v2

  // The process is outside of what this tool is shown of the hierarchy ("/../.."): the tool runs in
  // a cgroup namespace of its own, and the owner may be unknown for this reason.
  bool hidden = false;

  // The path below a scheduler's group that names no job; empty: it is in none.
  std::string unknown_job;
};

// Hybrid machines list several hierarchies: a field comes from the first that has it, in the order
// cgroup v2, cpuacct, all others.
ProcessGroup parse_process_group(std::string_view text);

// The CPU time of control groups, which includes that of processes too short to be listed.

// Of cgroup v2 (cpu.stat), or of v1's controller cpuacct (cpuacct.usage).
// Thread safety: none.
class CgroupTimes {
 public:
  explicit CgroupTimes(const std::filesystem::path& root = "/");

  // Keeps the group of a process, and returns its key. Empty for the root group, and where the
  // group's time cannot be found: its processes have their own times only.
  std::string keep(const ProcessGroup& group);

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
  };

  // Reads all groups. Those that are gone are forgotten.
  void read();
  Group* find(const std::string& key);
  // Computes `unlisted` of each group, once its processes are known.
  void settle();
  const std::map<std::string, Group>& all() const { return groups_; }

 private:
  std::filesystem::path root_;
  struct Mount {
    std::string within;  // of the hierarchy, what is mounted
    std::filesystem::path at;
  };
  std::optional<Mount> unified_;
  std::optional<Mount> cpuacct_;
  std::map<std::string, Group> groups_;
};

}  // namespace jouleprof::spans
