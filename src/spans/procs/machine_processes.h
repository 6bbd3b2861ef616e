// All processes of the machine, each with its owner and its CPU time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "model/process/process.h"
#include "spans/procs/cgroup.h"
#include "spans/procs/procfs.h"

namespace jouleprof::spans {

// The CPU time that the kernel counts for another process, without reading a file.
// Takes a tenth of the time that reading /proc/PID/stat takes, and counts nanoseconds instead of
// hundredths of a second. No right is needed (clock_getcpuclockid(3)).
// Thread safety: all functions from any thread.
class ProcessClock {
 public:
  // `root`: where proc is. Works only where the pids there are those of this process's namespace.
  explicit ProcessClock(const std::filesystem::path& root);

  // The CPU time of all threads, those that have ended included. Absent where there is no such
  // process, and where the clock does not work.
  std::optional<Duration> time(pid_t pid) const;

 private:
  bool works_ = false;
};

// --- All processes of the machine, each with its owner and its CPU time, look by look ---

struct ListedProcess {
  std::uint64_t id = 0;  // of its begin and its pid: not given twice while the machine runs
  pid_t pid = 0;
  std::string name;
  model::Owner owner;   // its user is the process's own
  Duration cpu_time{};  // since the look before
};

// A process between two looks.
struct FoundProcess {
  ListedProcess process;  // without its CPU time
  HostTime start{};
};

// CPU time that a group used and none of its listed processes: that of processes which began and
// ended between two looks, and the last of processes that ended.
struct UnlistedTime {
  model::Owner owner;
  Duration cpu_time{};
};

// All times are since the look before, and zero at the first one.
struct MachineLook {
  model::MachineReading machine;
  std::vector<ListedProcess> processes;
  std::vector<UnlistedTime> unlisted;
  // The rest of the machine's busy time: the kernel's threads and interrupts, and processes of no
  // known group that ended before they were listed.
  Duration others{};
  bool hides_owners = false;  // a cgroup namespace hides from the tool where some processes belong
  bool hides_processes = false;  // of other users (hidepid of proc(5), ProtectProc of systemd)
  // The first group found that is a scheduler's and has no name of a job; empty: there is none.
  std::string unknown_job;
};

// Reads /proc and the cgroup hierarchies below `root`. The kernel's threads are not listed. The
// processes are those of the look before where the kernel counted no new one, without the ended.
// The processes of a group whose CPU time stood still are not read. Of others the CPU time is read
// at each look. Of those that used some, the status, group and name are read at the first looks and
// now and then, and the user at the first looks, when the effective user changed, and rarely. The
// group is read, too, when the processes of a group used more than it did, or it is gone: one of
// them has moved.
// Thread safety: none.
class MachineProcesses {
 public:
  explicit MachineProcesses(const std::filesystem::path& root = "/");

  // Errors: as ProcFs::machine's; what follows then counts from the look before.
  Result<MachineLook> look();

  // The process that has this pid now, for pids from a driver: it may end before the next look.
  // Absent where there is none.
  std::optional<FoundProcess> find(pid_t pid);

 private:
  struct Entry {
    std::uint64_t id = 0;
    std::uint64_t start_ticks = 0;
    std::string name;
    std::uint32_t user = 0;
    std::optional<std::uint32_t> effective_user;  // when `user` was read
    std::string group;                            // of CgroupTimes; empty: none
    std::optional<std::string> left;              // the group of the look before, if it was another
    model::Owner owner;
    bool hidden = false;
    bool kernel = false;
    Duration cpu_time{};     // in total, as last read
    Duration used{};         // since the look before
    unsigned looks = 0;      // at its CPU time
    std::uint64_t seen = 0;  // the last look that found it
  };

  void find_processes();
  bool read(pid_t pid, Entry& entry);
  bool is_due(pid_t pid, const Entry& entry) const;
  bool is_group_gone(const Entry& entry);
  void count(Duration cpu_time, Entry& entry) const;
  void read_owner(pid_t pid, Entry& entry);
  void follow_into_groups();
  void read_user(pid_t pid, Entry& entry);
  MachineLook result(Duration busy);

  ProcFs procs_;
  const ProcessClock clock_;
  CgroupTimes groups_;
  std::unordered_map<pid_t, Entry> entries_;
  std::vector<pid_t> pids_;
  std::string unknown_job_;
  std::optional<ProcFs::Machine> machine_;
  HostTime looked_at_{};
  std::uint64_t looks_ = 0;
  bool may_skip_ = false;  // in this look: no pid was given out again since the last one
};

}  // namespace jouleprof::spans
