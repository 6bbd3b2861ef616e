// The records of a tree of processes, for tests.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <vector>

#include "spans/procs/process_tree.h"

namespace jouleprof::spans {

inline HostTime at(int s) { return HostTime{std::chrono::seconds{s}}; }
inline Duration ticks(int n) { return Duration{std::chrono::seconds{n}} / sysconf(_SC_CLK_TCK); }

// The last figures of every process.
struct Ledger {
  std::map<pid_t, model::Process> processes;
  std::map<pid_t, model::ProcessReading> last;
  TreeChanges changes;

  void look(ProcessTree& tree, int s, bool no_forks = false, bool all = false) {
    changes.clear();
    tree.update(at(s), changes, no_forks, all);
    std::map<model::ProcessId, pid_t> pids;
    for (const auto& p : changes.processes) processes[p.pid] = p;
    for (const auto& [pid, p] : processes) pids[p.id] = pid;
    for (const auto& r : changes.readings) last[pids.at(r.process)] = r;
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> out;
    for (const auto& [pid, p] : processes) out.push_back(pid);
    return out;
  }
  Duration total() const {
    Duration sum{};
    for (const auto& [pid, r] : last) sum += r.cpu_time + r.unseen_children_cpu_time;
    return sum;
  }
};

}  // namespace jouleprof::spans
