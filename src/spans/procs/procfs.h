// Processes and the machine, from /proc and the environment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "model/process/process.h"

namespace jouleprof::spans {

// /proc/PID/stat (proc_pid_stat(5)). CPU times have the kernel's display resolution, 10 ms.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  std::string name;
  Duration cpu_time{};           // user and system, all threads
  Duration children_cpu_time{};  // of children that were waited for, and theirs
  int threads = 0;
  std::uint64_t start_ticks = 0;  // after boot; with the pid it identifies a process
  std::uint64_t rss_bytes = 0;
  bool ignores_children = false;  // SIGCHLD: the kernel drops the CPU time of children that end

  // It has ended; its parent has not waited for it yet.
  bool ended() const { return (state == 'Z' && threads <= 1) || state == 'X' || state == 'x'; }
};

std::optional<ProcessStat> parse_process_stat(std::string_view text);

struct ProcessMemory {
  std::uint64_t pss_bytes = 0;
  std::uint64_t uss_bytes = 0;
};

// Reads below `root`/proc. Folder and buffers are kept between calls.
// Thread safety: none.
class ProcFs {
 public:
  explicit ProcFs(const std::filesystem::path& root = "/");
  ProcFs(const ProcFs&) = delete;
  ProcFs& operator=(const ProcFs&) = delete;

  // Errors: not_found when there is no such process; others as read_file's.
  Result<ProcessStat> stat(pid_t pid);

  // Appends the children of all of a process's `threads`. False where the kernel does not list them
  // (CONFIG_PROC_CHILDREN) or the process is gone.
  bool children(pid_t pid, int threads, std::vector<pid_t>& out);

  // Appends every process there is.
  void all(std::vector<pid_t>& out);

  const std::filesystem::path& path() const { return folder_; }
  int folder() const;  // /proc, open; -1: it cannot be opened

  // About how many processes there are, without listing them.
  std::size_t count_estimate() const;

  std::string command_line(pid_t pid);           // blank-separated; empty when it cannot be read
  std::string environment(pid_t pid);            // each NAME=value ended by a zero byte
  std::optional<pid_t> own_pid(pid_t pid);       // its pid as it sees itself, where that differs
  std::optional<std::uint32_t> user(pid_t pid);  // its real uid
  std::optional<std::uint32_t> effective_user(pid_t pid);  // much faster than user()
  std::string cgroup(pid_t pid);                   // /proc/PID/cgroup; empty: it cannot be read
  std::optional<ProcessMemory> memory(pid_t pid);  // expensive: walks the page tables

  struct Machine {
    model::MachineReading reading;
    std::optional<std::uint64_t> forks;  // processes and threads begun since boot
  };
  // Errors: as read_file's; corrupt.
  Result<Machine> machine(HostTime at);

  // When a process began, from ProcessStat::start_ticks. Exact to the tick (10 ms)
  // for a process that began after the machine was last suspended.
  static HostTime start_time(std::uint64_t start_ticks);

 private:
  int read(const char* path);  // into buffer_; 0 or an errno
  Error error(const char* path, int err) const;

  std::filesystem::path folder_;
  KeptFile stat_;
  KeptFile memory_;
  mutable OwnDescriptor open_;  // folder_
  std::string buffer_;
};

// Whether this process runs in a PID namespace of its own, so that the pids of a driver (the
// machine's) are not valid in it.
bool in_pid_namespace(const std::filesystem::path& root = "/");

// --- Which machine this is, and which process of a parallel job ---

// The value of an environment variable; a null pointer where it is not set.
using Variable = std::function<const char*(const char* name)>;

// From the variables of torchrun, Open MPI, PMI and Slurm. The first of them, in this order, whose
// rank is a number gives rank, local rank and world size: the inner launcher numbers the processes
// that the outer one started. Values that are no numbers are absent.
model::Rank rank_of(const Variable& variable = ::getenv);

// Reads the rank in an environment as /proc has it: each NAME=value ended by a zero byte.
model::Rank rank_in(std::string_view environment);

// The user of this process by name, or by number where the system knows no name.
std::string user_here(const std::filesystem::path& passwd = "/etc/passwd");

// The nodes of Slurm's job as Slurm writes them, such as "node[1-4]"; empty: none.
std::string node_list_of(const Variable& variable = ::getenv);

// The boot of the running kernel; empty where `proc` does not have it.
std::string boot_id(const std::filesystem::path& proc = "/proc");

}  // namespace jouleprof::spans
