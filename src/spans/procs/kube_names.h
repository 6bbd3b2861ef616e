// Names of pods and containers from the folders in which the kubelet keeps their logs.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "model/process/kube_names.h"

namespace jouleprof::spans {

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
