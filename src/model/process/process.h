// Processes, and what they were seen to use.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"
#include "model/process/owner.h"

namespace jouleprof::model {

// Identifies a process within one recording (a pid alone can be given out twice).
enum class ProcessId : std::uint32_t {};

struct Process {
  ProcessId id{};
  pid_t pid = 0;                 // in this tool's PID namespace
  std::optional<pid_t> own_pid;  // as the process sees itself, where that differs (a container)
  pid_t parent_pid = 0;
  std::string name;          // what the kernel calls it (at most 15 characters)
  std::string command_line;  // blank-separated; empty when it cannot be read
  HostTime start{};
  std::optional<HostTime> end;  // absent while it lives or when its end was not seen
  bool in_tree = false;         // one of the measured command's processes
  Rank rank{};                  // of one of them, by the environment that it was started with

  bool operator==(const Process&) const = default;
};

// What one process had used by `at`.
struct ProcessReading {
  ProcessId process{};
  HostTime at{};
  // CPU time since the process began, its waited-for children's not included.
  Duration cpu_time{};
  // CPU time of children that ended and were waited for without ever being listed themselves.
  Duration unseen_children_cpu_time{};
  std::optional<std::uint64_t> pss_bytes;  // proportional set size
  std::optional<std::uint64_t> uss_bytes;  // unique set size
  std::optional<std::uint64_t> rss_bytes;  // resident set size

  bool operator==(const ProcessReading&) const = default;
};

// The use of one GPU by one process around `at`.
struct GpuProcessReading {
  ProcessId process{};
  DomainId domain{};
  HostTime at{};
  std::optional<double>
      compute_utilisation;  // 0 to 1: of the multiprocessors; mean since the last report
  std::optional<std::uint64_t> memory_bytes;

  bool operator==(const GpuProcessReading&) const = default;
};

// The same as a driver reports it, by pid.
struct GpuProcessUse {
  pid_t pid = 0;  // in the driver's PID namespace: the machine's
  DomainId domain{};
  HostTime at{};
  std::optional<double> compute_utilisation;
  std::optional<std::uint64_t> memory_bytes;

  bool operator==(const GpuProcessUse&) const = default;
};

// What the whole machine had used by `at`.
struct MachineReading {
  HostTime at{};
  Duration busy_cpu_time{};   // all processes, all CPUs, since boot
  Duration total_cpu_time{};  // busy and idle
  std::uint64_t memory_used_bytes = 0;

  bool operator==(const MachineReading&) const = default;
};

struct ProcessReadings {
  std::vector<ProcessReading> processes;
  std::vector<GpuProcessReading> gpu_processes;
  std::vector<MachineReading> machine;

  bool empty() const { return processes.empty() && gpu_processes.empty() && machine.empty(); }
  void clear() {
    processes.clear();
    gpu_processes.clear();
    machine.clear();
  }
  bool operator==(const ProcessReadings&) const = default;
};

// The energy of processes by time.

// Equal slices of time, one after the other. The values of a row begin at slice `first` and are
// zero outside.
struct ProcessSlices {
  struct Row {
    ProcessId process{};
    DomainId domain{};
    std::size_t first = 0;
    std::vector<Energy> energies;  // they sum exactly to the process's share of the domain
  };
  struct CpuTime {
    ProcessId process{};
    std::size_t first = 0;
    std::vector<Duration> times;  // they sum to ProcessProfile::cpu_time, but for rounding
  };
  HostTime begin{};  // of the first slice
  Duration step{};
  std::size_t count = 0;
  // The rows with the highest energies, greatest first, and the CPU time of their processes.
  std::vector<Row> rows;
  std::vector<CpuTime> cpu_times;
};

}  // namespace jouleprof::model
