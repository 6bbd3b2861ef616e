// Trees of processes and a made-up /proc, for tests.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "spans/procs/process_tree.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spans {

inline HostTime at(int s) { return HostTime{std::chrono::seconds{s}}; }
inline Duration ticks(int n) { return Duration{std::chrono::seconds{n}} / sysconf(_SC_CLK_TCK); }

// The last figures of every process of a tree.
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

// --- A made-up /proc ---

struct FakeProcess {
  pid_t pid = 0;
  pid_t parent = 1;
  int cpu_ticks = 0;       // 10 ms each
  int children_ticks = 0;  // of children waited for
  std::string name = "worker";
  char state = 'S';
  int threads = 1;
  int start_ticks = 1000;
  int rss_pages = 25;
  bool ignores_children = false;
};

class FakeProc {
 public:
  void put(const FakeProcess& p) const {
    tree.write(
        fmt::format("proc/{}/stat", p.pid),
        fmt::format("{} ({}) {} {} 1 1 0 -1 4194560 9 0 0 0 {} {} {} {} 20 0 {} 0 {} 4096 {} "
                    "18446744073709551615 0 0 0 0 0 0 0 {} 0 0 0 0 17 1 0 0 0 0 0\n",
                    p.pid, p.name, p.state, p.parent, p.cpu_ticks - p.cpu_ticks / 3,
                    p.cpu_ticks / 3, p.children_ticks - p.children_ticks / 3, p.children_ticks / 3,
                    p.threads, p.start_ticks, p.rss_pages, p.ignores_children ? 1 << 16 : 0));
    tree.write(fmt::format("proc/{}/cmdline", p.pid), p.name + std::string("\0--flag\0", 8));
  }
  void children(pid_t pid, pid_t task, const std::string& list) const {
    tree.write(fmt::format("proc/{}/task/{}/children", pid, task), list);
  }
  void remove(pid_t pid) const { std::filesystem::remove_all(tree / fmt::format("proc/{}", pid)); }

  TempTree tree{{"proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\nprocesses 1\n"}};
};

}  // namespace jouleprof::spans
