// Which process the active energy of a domain belongs to.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "jouleprof/units.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// A domain's energy over the span, to be split.
struct DomainEnergy {
  model::Domain domain;
  Energy energy;
  Energy idle_part;  // at most `energy`
  // The energy of a part of the span; what a sum over parts should be close to `energy`.
  std::function<Energy(HostTime, HostTime)> part;
  std::optional<Power> idle;
};

// One domain's active energy, split. The parts sum to energy - idle_part exactly.
struct DomainSplit {
  std::vector<Energy> shares;  // by the recording's processes, in its order
  Energy others;
  Energy unattributed;
};

// What the recording's processes used within a span.
struct ProcessUse {
  std::vector<std::optional<Duration>> cpu_time;  // in the recording's order; unseen children's too
  Duration machine_cpu_time{};                    // of everything that ran, as far as it was read
  std::vector<std::optional<double>> compute_utilisation;  // time-weighted mean
};

// Splits active energy slice by slice, from one round of process readings to the next. The active
// energy of the span is dealt to the slices by their energy above idle (a slice below it gets
// none).
//
// CPU, its parts and DRAM: within a slice in proportion to CPU time. The measured command's
// processes get their own; the rest of the machine's busy time is the others'. DRAM follows CPU
// time too: the power of memory above idle is that of traffic, which only running processes make,
// while resident memory that nobody touches costs the same as at idle. Without readings of the
// whole machine the others' part can't be told, and all is unattributed.
//
// GPU: in proportion to SM utilisation. A process alone on the GPU gets everything; with several
// and the utilisation of one unknown, or nobody on it, the slice is unattributed. Platform and
// module domains hold more than processes; all of it is unattributed.
class ProcessSplitter {
 public:
  ProcessSplitter(const model::Recording& recording, HostTime begin, HostTime end);

  DomainSplit split(const DomainEnergy& domain) const;
  const ProcessUse& use() const { return use_; }

  // Slices in which several processes shared a GPU and not all utilisations were known.
  bool saw_unknown_utilisation() const { return unknown_utilisation_; }

 private:
  void add_cpu_time(const model::Recording& recording);
  void add_machine_time(const model::Recording& recording);

  const model::Recording& recording_;
  std::vector<HostTime> edges_;              // of the slices: one more than there are slices
  std::vector<std::vector<double>> cpu_;     // seconds, by slice and process (empty: none)
  std::vector<std::optional<double>> busy_;  // seconds of the whole machine, by slice
  ProcessUse use_;
  mutable bool unknown_utilisation_ = false;
};

}  // namespace jouleprof::analysis
