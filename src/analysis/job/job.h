// The energy of a job: several recordings, of hosts, ranks or parts of it, taken together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/job/job_ranks.h"
#include "analysis/run.h"
#include "base/result.h"
#include "model/process/process.h"

namespace jouleprof::analysis {

// A domain of one host. Several recordings of it count once: each time belongs to the first of them
// that covers it.
struct JobDomain {
  std::string label;                         // "gpu0", "dram package-0"
  std::string identity;                      // the GPU's UUID, else its device
  std::optional<model::Measurement> energy;  // over the union of the recordings' times
  std::string reason;                        // why it is absent, or that of a part of the time
  // A recording of the domain has no energy, and no other covers its time: `energy` is a lower
  // bound.
  bool lacks_time = false;
  bool is_counted = true;  // in the total: contains and is in no other domain
  // What it took while it had readings, which are of a part of the work; not in `energy`, but in
  // the totals.
  std::optional<model::Measurement> least;
  bool is_partial() const { return is_counted && (least || lacks_time); }
};

// The clock of a machine against the reference's, by the collectives that ranks of both took part
// in.
struct HostClock {
  std::string reference;        // the machine; its own offset is 0
  double offset_seconds = 0;    // its wall clock less the reference's, at the first collective
  double drift = 0;             // of its steady clock: seconds in a second
  double error_seconds = 0;     // bound of what the alignment can be wrong by
  double residual_seconds = 0;  // root mean square of the collectives' ends about the line
  std::size_t calls = 0;
};

struct JobHost {
  // Several names, where containers of one machine have their own; with digits of the boot id,
  // where machines share a name. The recording's, where that names none.
  std::string host;
  std::string boot_id;
  bool names_no_machine = false;
  std::vector<std::string> recordings;
  std::vector<JobDomain> domains;
  std::optional<model::Measurement> total;  // over counted domains that have an energy
  bool is_partial = false;                  // one of them is: `total` is a lower bound
  HostTime begin{};                         // of the first recording's work
  HostTime end{};                           // of the last one's
  Duration covered{};                       // the union of the recordings' times
  std::optional<RealTime> began;            // by the host's wall clock
  // By how much its wall clock moved against its steady clock while it was recorded.
  Duration clock_change{};
  Duration suspended{};            // from `begin` to `end`, by its steady clock no time
  std::optional<HostClock> clock;  // absent: no collectives in common with another machine
};

// The processes of one rank in one recording. Their energies are shares of the host's dynamic
// energy.
struct JobRank {
  model::Rank rank;
  std::string host;  // as JobHost's, but for a container its own
  std::string boot_id;
  std::string recording;
  Duration length{};
  std::optional<Duration> cpu_time;
  std::optional<Energy> energy;  // absent: no process of it has a share
  // Devices that it used, and of which its energy above rest is unknown: `energy` lacks them.
  std::set<std::string> without;
  model::DivisionBounds bounds;  // of `energy`: what the division by use leaves open
  // Parts of `energy` that ranks whose kernels were traced have on GPUs.
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

// A figure over ranks or recordings.
struct Spread {
  std::size_t of = 0;  // how many have the figure
  double least = 0;
  double mean = 0;
  double most = 0;
  double deviation = 0;  // sample standard deviation; 0 of one
  std::string most_in;   // the rank or recording with the most
};

// All windows of one name, over the ranks. A rank is a recording where processes have no number.
struct JobWindow {
  std::string name;
  std::size_t count = 0;
  std::optional<model::Measurement> energy;  // each device and time once
  // A window has no energy of a device that has one elsewhere, for this reason: `energy` is a lower
  // bound.
  bool is_partial = false;
  std::string reason;
  // The spread over ranks whose windows all have energy. A rank has all energy of its windows'
  // devices. Ranks that share a device each have its energy, so that the sum over ranks can exceed
  // `energy`.
  Spread joules;
  Spread seconds;
};

// A layer of one name. Energy of its own kernels, over the recordings.
struct JobLayer {
  std::string name;
  std::uint64_t launches = 0;
  std::optional<model::Measurement> energy;
  Spread joules;   // of a recording
  Spread seconds;  // busy time in a recording
};

// What a job is charged with, of the recordings of one or several jobs:
//   charged = dynamic + rest. `dynamic`: the shares of its processes. `rest`: the energy at rest of
// the devices that no other family used (docs/glossary.md, "of the command"). With
// JobRules::machine_share, of CPUs and DRAM that share of it, whether others used them or not.
struct JobShare {
  std::string job;  // Slurm's number; empty: none
  std::size_t hosts = 0;
  std::size_t recordings = 0;
  std::size_t ranks = 0;
  Duration recorded{};  // the sum over hosts
  Energy dynamic;
  Energy rest;
  bool knows_rest = false;        // of some device; else `rest` is unknown, and 0 here
  bool has_unknown_rest = false;  // in `dynamic`: that of devices whose rest is unknown
  Energy charged() const { return dynamic + rest; }
};

struct JobRules {
  std::optional<double> machine_share;  // of the rest of CPUs and DRAM; absent: by use
};

struct Job {
  std::vector<JobHost> hosts;      // by name and boot
  std::vector<JobRank> ranks;      // by number, then by host and recording
  std::vector<JobWindow> windows;  // by energy
  std::vector<JobLayer> layers;    // by energy
  // Together with `others`, `undivided` and `not_charged` they are the total, exactly.
  std::vector<JobShare> shares;
  Energy others;       // dynamic energy of processes outside of the recorded commands
  Energy undivided;    // of no known process; where recordings overlap, others' too
  Energy not_charged;  // at rest, of devices that other families used, and beyond the rules' share
  std::optional<model::Measurement> total;
  bool is_partial = false;  // a host is: all sums are lower bounds
  // What `shares` are charged with, over all jobs. Absent where no recording is of a command.
  std::optional<model::CommandEnergy> command;
  std::optional<RealTime> began;    // of all hosts
  std::optional<Duration> elapsed;  // from the first begin to the last end, by the wall clocks
  std::size_t recordings = 0;
  bool is_aligned = false;  // `elapsed` and waiting are by the collectives' clocks, not wall clocks
  std::size_t without_energy = 0;      // domains without one
  std::vector<RankGroup> rank_groups;  // the largest first
  std::vector<std::string> warnings;
};

// Adds one host after the other, so that the recordings of only one need to be in memory.
class JobBuilder {
 public:
  JobBuilder(JobBuilder&&) noexcept;
  JobBuilder& operator=(JobBuilder&&) noexcept;
  ~JobBuilder();

  struct Named {
    std::string name;  // of its file
    Run run;
  };
  explicit JobBuilder(JobRules rules = {});

  // All recordings of one host and boot; not empty. Errors: as Run::span's and Run::profile's;
  // corrupt for recordings of several hosts or boots.
  Result<void> add_host(const std::vector<Named>& recordings);
  Job finish() &&;

 private:
  struct Clocks;
  Result<void> check_distinct(const JobHost& host) const;
  void name_machines();
  void align();
  void check_ranks();

  JobRules rules_;
  Job job_;
  RankCensus census_;
  std::unique_ptr<Clocks> clocks_;
};

}  // namespace jouleprof::analysis
