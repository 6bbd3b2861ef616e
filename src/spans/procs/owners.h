// Who is behind a control group: the naming rules of container runtimes, kubelet, schedulers and
// systemd; and the names of jobs and pods that schedulers and the kubelet write into folders.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "model/process/process.h"

namespace jouleprof::spans {

// The owner that a path within a cgroup hierarchy names. The deepest container, pod, job and unit
// win, so that a cluster in a container (kind) and a container in a job are found. `user` is that
// of the path (user-1000.slice), not of the process. Below user@UID.service, where that user names
// the groups, nothing is read: the unit is user@UID.service. Of a system's account (UID below 1000)
// the jobs of Flux are.
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

// --- Which jobs a scheduler gave each GPU to, from the files that its prolog writes ---

// The jobs of one GPU, or of one MIG instance on it.
struct GpuJobs {
  std::string gpu;                   // the GPU's index, or its UUID
  std::optional<unsigned> instance;  // the GPU instance, where it is MIG's
  std::vector<std::string> jobs;     // in the file's order, each once

  bool operator==(const GpuJobs&) const = default;
};

// The format of dcgm-exporter's HPC job mapping: a folder with one file for each GPU, named
// "<gpu>" or "<gpu>.<instance>", that holds one job id a line. Files of other names are ignored.
// At most 1024 files of 64 KiB are read; an id is at most 128 printable characters without blanks.
class JobMapping {
 public:
  // Reads the folder anew. A file that vanishes while the folder is read has no jobs.
  // Errors: as list_folder's; the mapping is then empty.
  Result<void> read(const std::filesystem::path& folder);

  const std::vector<GpuJobs>& all() const { return all_; }

  // The first file of a GPU that has a line that is no job id, which gives the GPU to no job;
  // empty: none has.
  const std::string& malformed() const { return malformed_; }

  // The job of a GPU that exactly one job has; absent where there is none, or several.
  std::optional<std::string> only_job(std::optional<unsigned> index, std::string_view uuid) const;

 private:
  std::vector<GpuJobs> all_;
  std::string malformed_;
  std::map<std::string, std::vector<std::string>, std::less<>> by_gpu_;
};

// Names of pods and containers from the folders in which the kubelet keeps their logs.
// Reads the names of files only:
//  - FOLDER/pods/NAMESPACE_POD_UID: a pod. The uid of a static pod is the hash of its manifest, and
//    its control group has that, too.
//  - FOLDER/containers/POD_NAMESPACE_CONTAINER-ID.log: a container.
// Other names are ignored. At most 10,000 of each are read. On a node FOLDER is /var/log.
// Thread safety: none.
class KubeNameFolder {
 public:
  explicit KubeNameFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The names now; read anew where a folder has changed. Errors: as list_folder's, where there is
  // no folder of pods; the names are then empty.
  Result<void> read();

  const model::KubeNames& names() const { return names_; }

 private:
  using Time = std::filesystem::file_time_type;

  const std::filesystem::path folder_;
  Time pods_changed_ = Time::min();
  Time containers_changed_ = Time::min();
  model::KubeNames names_;
};

}  // namespace jouleprof::spans
