// The parts of one domain's energy: at rest, of processes, of others, unattributed.
#pragma once

#include <optional>

#include "analysis/processes/processes.h"
#include "analysis/processes/traced_split.h"
#include "analysis/profile_builder.h"

namespace jouleprof::analysis {

class DomainSplitter {
 public:
  // Arguments outlive this.
  DomainSplitter(const ProfileInput& input, const ProcessSplitter& processes)
      : input_(input), processes_(processes) {}

  // Of a domain whose energy and levels are known; sets `idle_part` and `shares_include_rest`.
  // Absent where nothing is known of processes.
  std::optional<TracedSplit> split(model::DomainProfile& domain, EnergyTimeline& timeline,
                                   const BoardLevels& levels) const;

 private:
  const model::ActivityProfile* activity_of(const model::Domain& domain) const;
  TracedSplit split_whole(const model::DomainProfile& domain, EnergyTimeline& timeline) const;
  TracedSplit split_by_use(const model::DomainProfile& domain, EnergyTimeline& timeline,
                           const BoardLevels& levels, Energy active) const;
  TracedSplit shares_of(const model::Domain& domain, const DomainEnergy& energy) const;
  void add_held(TracedSplit& split, const model::Domain& domain, const BoardLevels& levels,
                Energy held) const;

  const ProfileInput& input_;
  const ProcessSplitter& processes_;
};

}  // namespace jouleprof::analysis
