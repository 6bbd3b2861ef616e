// Looks at the machine and at the measured processes as often as it may.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session/sampling/recorder.h"
#include "spans/procs/process_tree.h"

namespace jouleprof::session {

// Thread safety: none.
class ProcessWatch {
 public:
  // `period` of the looks; they become rarer, down to one in ten seconds, where a look is dear.
  ProcessWatch(const std::filesystem::path& root, Duration period);

  // The tree to look at from now on; see spans::TreeOptions. The first looks follow each other
  // quickly, so that a short command is seen as well.
  void follow(const spans::TreeOptions& options);

  // Another process whose descendants are in the tree.
  void add_root(pid_t root);

  HostTime next() const { return next_; }

  // `all`: processes whose figures stand still too.
  void look(HostTime now, Batch& out, bool all = false);

  // What a driver reported of processes, before the last look. `parents`: as Sampled's. Returns a
  // warning where its pids cannot be matched with ours.
  std::optional<std::string> add_gpu_uses(const std::vector<model::GpuProcessUse>& uses, Batch& out,
                                          const std::map<pid_t, pid_t>& parents = {});

  std::vector<model::Process> alive() const { return tree_.alive(); }
  // Whether a look has found it.
  bool knows(pid_t pid) const { return tree_.knows(pid); }

  // Waits for orphans that ended and became this process's children, all but `except`.
  void reap(pid_t except);

 private:
  spans::ProcFs procs_;
  spans::ProcessTree tree_;
  Duration period_;
  Duration step_;
  HostTime next_{};
  std::optional<std::uint64_t> forks_;
  bool in_pid_namespace_;
};

}  // namespace jouleprof::session
