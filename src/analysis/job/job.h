// The energy of a job: several recordings, of hosts, ranks or parts of it, taken together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "base/result.h"
#include "model/rank.h"

namespace jouleprof::analysis {

// A domain of one host. Several recordings of it count once: each time belongs to the first of them
// that covers it.
struct JobDomain {
  std::string label;                         // "gpu0", "dram package-0"
  std::string identity;                      // the GPU's UUID, else its device
  std::optional<model::Measurement> energy;  // over the union of the recordings' times
  std::string reason;                        // why it is absent
  bool is_counted = true;                    // in the total: contains and is in no other domain
};

struct JobHost {
  std::string host;  // several, where containers of one machine have names of their own
  std::string boot_id;
  std::vector<std::string> recordings;
  std::vector<JobDomain> domains;
  std::optional<model::Measurement> total;  // over counted domains that have an energy
  HostTime begin{};                         // of the first recording's work
  HostTime end{};                           // of the last one's
  Duration covered{};                       // the union of the recordings' times
  std::optional<RealTime> began;            // by the host's wall clock
  // By how much its wall clock moved against its steady clock while it was recorded. The offset of
  // the wall clocks of hosts is not in recordings.
  Duration clock_change{};
};

// The processes of one rank in one recording. Their energies are shares of the host's dynamic
// energy.
struct JobRank {
  model::Rank rank;
  std::string host;
  std::string recording;
  Duration length{};
  std::optional<Duration> cpu_time;
  std::optional<Energy> energy;  // absent: no process of it has a share
  // Of `energy`, on GPUs, of ranks whose kernels were traced.
  std::optional<Energy> held;
  std::optional<Energy> kernels;
  std::optional<Energy> idle_between;  // launches
  // In its collectives: as CollectiveRank's. Absent where they were not matched over the ranks.
  std::optional<Duration> waiting;
  std::optional<Duration> transfer;
  std::optional<model::Measurement> waiting_energy;
  std::optional<model::Measurement> transfer_energy;
  // On GPUs, in kernels that are no collectives; and by how much that is more than the mean of the
  // recording's ranks, relative to it.
  std::optional<Duration> kernel_time;
  std::optional<double> imbalance;
};

struct Job {
  std::vector<JobHost> hosts;  // by name and boot
  std::vector<JobRank> ranks;  // by number, then by host and recording
  std::optional<model::Measurement> total;
  std::optional<RealTime> began;    // of all hosts
  std::optional<Duration> elapsed;  // from the first begin to the last end, by the wall clocks
  std::size_t recordings = 0;
  std::size_t without_energy = 0;  // domains without one
  std::vector<std::string> warnings;
};

// Adds one host after the other, so that the recordings of only one need to be in memory.
class JobBuilder {
 public:
  struct Named {
    std::string name;  // of its file
    Run run;
  };
  // All recordings of one host and boot; not empty. Errors: as Run::span's and Run::profile's;
  // corrupt for recordings of several hosts or boots.
  Result<void> add_host(const std::vector<Named>& recordings);
  Job finish() &&;

 private:
  Job job_;
};

}  // namespace jouleprof::analysis
