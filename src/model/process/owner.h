// For whom a process works: its container, pod, job, unit and user.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace jouleprof::model {

// An empty text or an absent number: the process belongs to none, or it is not known.
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

// As the launcher numbered it. What the launcher did not set is absent.
struct Rank {
  std::optional<std::uint32_t> global;      // in the whole job, from 0
  std::optional<std::uint32_t> local;       // on its host, from 0
  std::optional<std::uint32_t> world_size;  // processes in the whole job
  std::string launcher;                     // "torchrun", "openmpi", "pmi", "slurm", or empty
  std::string job;                          // Slurm's number of the job and ...
  std::string step;                         // ... of the step in it

  bool operator==(const Rank&) const = default;
};

// What Kubernetes calls the pods and containers of a machine.

struct PodName {
  std::string name_space;
  std::string name;

  bool operator==(const PodName&) const = default;
};

struct KubeNames {
  std::map<std::string, PodName> pods;            // by the uid of the pod, with dashes
  std::map<std::string, std::string> containers;  // their names, by container id
};

}  // namespace jouleprof::model
