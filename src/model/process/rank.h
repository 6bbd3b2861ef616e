// Which of the processes of a parallel job one is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace jouleprof::model {

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

}  // namespace jouleprof::model
