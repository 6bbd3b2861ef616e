// Processes, and what they were seen to use.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

// For whom a process works: its container, pod, job, unit and user. An empty text or an absent
// number: the process belongs to none, or it is not known.
struct Owner {
  std::string container;  // the id that its runtime gave it: 64 hexadecimal digits, or a name (lxc)
  std::string runtime;    // docker, containerd, cri-o, podman, lxc; empty where the path lacks it
  std::string pod;        // the uid of the Kubernetes pod, with dashes
  std::string job;        // the job's id: a scheduler's, or of a mapping directory
  std::string step;       // of Slurm's job: a number, batch, extern or interactive
  std::string unit;       // the innermost systemd service or scope that is no container
  std::optional<std::uint32_t> user;  // uid

  bool operator==(const Owner&) const = default;
};

// Which of the processes of a parallel job one is.
// The numbers that the launcher gave a process. What the launcher did not set is absent.
struct Rank {
  std::optional<std::uint32_t> global;      // in the whole job, from 0
  std::optional<std::uint32_t> local;       // on its host, from 0
  std::optional<std::uint32_t> world_size;  // processes in the whole job
  std::string launcher;                     // "torchrun", "openmpi", "pmi", "slurm", or empty
  std::string job;                          // Slurm's number of the job and ...
  std::string step;                         // ... of the step in it

  bool operator==(const Rank&) const = default;
};

struct PodName {
  std::string name_space;
  std::string name;

  bool operator==(const PodName&) const = default;
};

// What Kubernetes calls the pods and containers of a machine.
struct KubeNames {
  std::map<std::string, PodName> pods;            // by the uid of the pod, with dashes
  std::map<std::string, std::string> containers;  // their names, by container id
};

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

// Use of a GPU by a process, as a driver reports it by pid.
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
