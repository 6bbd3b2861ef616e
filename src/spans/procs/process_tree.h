// The processes that descend from one, and what each of them uses.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "jouleprof/units.h"
#include "model/process/process.h"
#include "spans/procs/cgroup.h"
#include "spans/procs/machine_processes.h"
#include "spans/procs/procfs.h"

namespace jouleprof::spans {

// How much of a parent's "children's CPU time" belongs to children that were never listed.
//
// When a process waits for a child, the kernel adds the child's own time and the child's children's
// time to the parent's (cutime, cstime). For a child that was listed while it lived, most of that
// has been counted already; for one that began and ended between two scans, none of it has.
class ChildTime {
 public:
  // One scan. `children_total`: the parent's cutime + cstime, read *before* its children were.
  // `listed_gone`: the time already counted for those of its listed children (and what passed
  // through them) that have ended by this scan.
  //
  // A child may be reaped between the two reads, so its time may arrive one scan later; what has
  // not arrived by then never will (a parent that ignores SIGCHLD is not charged for its children).
  void update(Duration children_total, Duration listed_gone);

  // The time of children never listed, and what listed ones used after they were last read. Never
  // falls.
  Duration unseen() const { return unseen_; }

  // All that has been counted of this parent's children, here or under their own names: what the
  // parent passes on in addition to its own time when it is waited for in turn.
  Duration counted() const { return unseen_ + paid_ + owed_; }

 private:
  Duration unseen_{};
  Duration paid_{};  // counted under the children's own names, and arrived
  Duration owed_{};  // the same, not arrived yet
};

struct TreeOptions {
  pid_t root = 0;  // 0: none
  // The process whose children the orphans of the tree become (PR_SET_CHILD_SUBREAPER): its
  // children are in the tree, but for those that it has now. 0: none.
  pid_t adopter = 0;
  // A group that holds exactly the tree. Must outlive it.
  const Cgroup* group = nullptr;
  // PSS and USS: how often for one process, and which share of a core all such reads may take.
  Duration memory_period = std::chrono::seconds{5};
  double memory_budget = 0.0002;
};

// The result of one scan.
struct TreeChanges {
  std::vector<model::Process> processes;  // new, renamed or ended ones, in their current state
  std::vector<model::ProcessReading> readings;
  std::optional<std::string> warning;  // at most one of a tree

  void clear() {
    processes.clear();
    readings.clear();
    warning.reset();
  }
};

// CPU time is neither lost nor counted twice: a listed process has the time that was read of it;
// what a listed process used after it was last read, and what children used that were never listed,
// reaches the parent that waits for them and is its unseen_children_cpu_time.
// Thread safety: none.
class ProcessTree {
 public:
  // `procs` must outlive the tree. Without a tree to follow there is only identify().
  explicit ProcessTree(ProcFs& procs) : procs_(procs), clock_(procs.path().parent_path()) {}

  // The tree to scan from now on. Ids continue: no two processes ever share one.
  void follow(const TreeOptions& options);

  // Another root, until the next follow(). Its descendants are found through their parents.
  void add_root(pid_t root) { new_roots_.push_back(root); }

  // Scans the tree and appends what is new. A process with unchanged figures is not repeated,
  // unless `all`. With `no_forks` (no process was forked on the machine since the last scan) it
  // does not search for new processes.
  void update(HostTime at, TreeChanges& out, bool no_forks = false, bool all = false);
  // CPU time that the last update took to read memory (memory_budget).
  Duration memory_cost() const { return memory_cost_; }

  // The process with this pid, for pids from a driver. One outside the tree is listed, with in_tree
  // false, at the first call for it; its CPU time then and where it changed. Absent where there was
  // never such a process.
  // One that is gone and was never read belongs to the tree where `parent`, which is known from
  // before, does.
  std::optional<model::ProcessId> identify(pid_t pid, HostTime at, TreeChanges& out,
                                           pid_t parent = 0);

  // What stands for all processes of other users together, where only their sum is known.
  model::ProcessId other_users(HostTime at, TreeChanges& out);

  // The processes of the tree that had not ended at the last scan.
  std::vector<model::Process> alive() const;
  // Whether it was found, and has not been found gone.
  bool knows(pid_t pid) const { return known_.contains(pid); }

  // Children of `parent` in the tree that have ended and wait to be reaped.
  std::vector<pid_t> zombies_of(pid_t parent) const;

 private:
  struct Entry {
    model::Process process;
    std::uint64_t start_ticks = 0;
    // What was last read:
    HostTime read_at{};
    pid_t parent = 0;
    int threads = 1;
    bool zombie = false;
    bool ignores_children = false;
    Duration cpu_time{};
    Duration children_cpu_time{};
    std::optional<std::uint64_t> rss_bytes;
    std::optional<ProcessMemory> memory;
    HostTime memory_at{};

    int looks = 0;
    bool gone = false;
    std::optional<pid_t> reused_by;  // the parent of another process that has its pid now
    ChildTime children;
    Duration listed_gone{};  // passed up by children found gone in this look
    std::optional<model::ProcessReading> written;
    std::optional<model::ProcessReading>
        skipped;  // the last one, equal to `written` but for its time

    // All time that was counted of it, in itself or in others: the kernel adds this to its parent
    // again when that waits for it.
    Duration counted() const { return cpu_time + children.counted() + listed_gone; }
  };
  struct Outsider {
    model::Process process;
    std::uint64_t start_ticks = 0;
    Duration cpu_time{};  // as last read
  };

  std::vector<pid_t> discover(std::size_t first);
  void scan(std::vector<pid_t>& out);
  bool is_news(pid_t pid);
  bool descends(const ProcessStat& stat);
  void adopt(const std::vector<pid_t>& pids, TreeChanges& out);
  void adopt_reused(HostTime at, TreeChanges& out);
  void read(Entry& entry, HostTime at, TreeChanges& out);
  void settle(TreeChanges& out);
  void read_memory(HostTime at);
  static void emit(Entry& entry, HostTime at, bool all, TreeChanges& out);
  model::Process describe(const ProcessStat& stat, bool in_tree);

  ProcFs& procs_;
  ProcessClock clock_;
  TreeOptions options_;
  std::uint32_t next_id_ = 0;
  std::optional<model::ProcessId> other_users_;
  std::vector<Entry> entries_;  // alive or zombies; parents before their children
  bool root_listed_ = false;
  bool warned_ = false;
  std::vector<pid_t> new_roots_;
  bool has_more_roots_ = false;                           // the group does not hold all of the tree
  std::unordered_set<pid_t> known_;                       // of entries_
  std::unordered_map<pid_t, std::uint64_t> not_adopted_;  // the adopter's own, with their start
  std::unordered_map<pid_t, Outsider> outsiders_;
  std::unordered_map<pid_t, model::ProcessId> ended_;  // of the tree
  HostTime memory_allowed_{};
  Duration memory_cost_{};
};

}  // namespace jouleprof::spans
