// For whom a process works: its container, pod, job, unit and user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace jouleprof::model {

// An empty text or an absent number: the process belongs to none, or it is not known.
struct Owner {
  std::string container;  // the id that its runtime gave it: 64 hexadecimal digits, or a name (lxc)
  std::string runtime;    // docker, containerd, cri-o, podman, lxc; empty where the path lacks it
  std::string pod;        // the uid of the Kubernetes pod, with dashes
  std::string job;        // the job's id: Slurm's, or of a mapping directory
  std::string step;       // of the Slurm job: a number, batch, extern or interactive
  std::string unit;       // the innermost systemd service or scope that is no container
  std::optional<std::uint32_t> user;  // uid

  bool operator==(const Owner&) const = default;
};

}  // namespace jouleprof::model
