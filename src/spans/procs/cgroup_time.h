// The CPU time of control groups, which includes that of processes too short to be listed.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/kept_file.h"
#include "model/process/owner.h"
#include "spans/procs/owner_rules.h"

namespace jouleprof::spans {

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
