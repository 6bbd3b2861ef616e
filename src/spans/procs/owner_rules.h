// Who is behind a control group: the naming rules of container runtimes, kubelet, Slurm and
// systemd.
#pragma once

#include <string>
#include <string_view>

#include "model/process/owner.h"

namespace jouleprof::spans {

// The owner that a path within a cgroup hierarchy names. The deepest container, pod, job and unit
// win, so that a cluster in a container (kind) and a container in a job are found. `user` is that
// of the path (user-1000.slice), not of the process. Below user@UID.service, where that user names
// the groups, nothing is read: the unit is user@UID.service.
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

}  // namespace jouleprof::spans
