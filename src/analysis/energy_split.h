// The parts of one domain's energy: at rest, of processes, of others, unattributed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "analysis/processes/processes.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/profile_builder.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

class DomainSplitter {
 public:
  // Arguments outlive this.
  DomainSplitter(const ProfileInput& input, const ProcessSplitter& processes)
      : input_(input), processes_(processes) {}

  // Splits a domain whose energy and levels are known, and sets `idle_part` and
  // `shares_include_rest`. Absent where nothing is known of processes.
  std::optional<TracedSplit> split(model::DomainProfile& domain, EnergyTimeline& timeline,
                                   const BoardLevels& levels) const;

 private:
  const model::ActivityProfile* activity_of(const model::Domain& domain) const;
  TracedSplit split_whole(const model::DomainProfile& domain, EnergyTimeline& timeline) const;
  TracedSplit split_by_use(const model::DomainProfile& domain, EnergyTimeline& timeline,
                           const BoardLevels& levels, Energy active) const;
  // What a level that is unknown has at most, where others held the board, too: rest, or held above
  // rest. By the lowest power that lasted in the recording.
  Energy unknown_level(const model::DomainProfile& domain, EnergyTimeline& timeline,
                       const BoardLevels& levels) const;
  TracedSplit shares_of(const model::Domain& domain, const DomainEnergy& energy) const;
  void add_held(TracedSplit& split, const model::Domain& domain, const BoardLevels& levels,
                Energy held) const;

  const ProfileInput& input_;
  const ProcessSplitter& processes_;
};

// --- Whose joules: the part of a device's energy that is the command's (docs/glossary.md) ---

// Why the recording divides no energy between a command and others; empty where it does, or where
// all of its energy is the command's.
std::string no_command_reason(const model::Recording& recording);

// The command's energy of a domain that was divided as far as it can be. `processes`: the sum of
// the command's shares. Absent without an energy, or with a no_command_reason().
std::optional<model::CommandEnergy> command_energy(const model::Recording& recording,
                                                   const model::DomainProfile& domain,
                                                   Energy processes, const BoardLevels& levels);

// Processes' CPU time does not say on which of several sockets it was: all of it may have been on
// each. Widens the bounds of the command's part of each socket, and not those of sums over sockets.
void widen_by_socket(std::vector<model::DomainProfile>& domains);

// Whether others used a CPU or DRAM by `others` of its energy: each machine has some small use.
bool is_used_by_others(Energy others, const model::Measurement& whole);

// Sets energy, interval and provenance of a part of `whole` by `own.processes` and `own.rest`. The
// interval has the sensor's error and that of the division from `others`, and of other kinds
// `below` and `above`.
void set_interval(model::CommandEnergy& own, const model::Measurement& whole, Energy others,
                  Energy below, Energy above);

}  // namespace jouleprof::analysis
