// Attribution of a domain's dynamic energy to processes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "jouleprof/units.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

inline bool is_gpu(model::DomainKind kind) {
  return kind == model::DomainKind::kGpu || kind == model::DomainKind::kGpuMemory;
}

// A domain's energy over the span, to be split.
struct DomainEnergy {
  model::Domain domain;
  Energy energy;
  Energy idle_part;  // at most `energy`
  // The energy of a part of the span; over all parts about `energy`.
  std::function<Energy(HostTime, HostTime)> part;
  std::optional<Power> idle;
};

// One domain's dynamic energy by process. The parts sum to energy - idle_part exactly.
struct DomainSplit {
  std::vector<Energy> shares;  // by the recording's processes, in its order
  Energy others;
  Energy unattributed;
};

// The resource use of the recording's processes within a span.
struct ProcessUse {
  std::vector<std::optional<Duration>> cpu_time;  // in the recording's order; unseen children's too
  Duration machine_cpu_time{};                    // of all processes, where it was read
  std::vector<std::optional<double>> compute_utilisation;  // time-weighted mean of its readings
};

// Attributes dynamic energy slice by slice, from one round of process readings to the next. Slices
// share the span's dynamic energy in proportion to their energy above idle.
//
// CPU, its parts and DRAM: within a slice in proportion to CPU time. The rest of the machine's busy
// time belongs to other processes. DRAM follows CPU time, too: its power above idle is that of
// traffic, which only running processes cause. Without readings of the whole machine, all is
// unattributed.
//
// GPU: in proportion to SM utilisation. The only process on a GPU gets everything. A slice is
// unattributed where several share the GPU and one's utilisation is unknown, or where none uses it.
// Platform and module domains contain more than processes' work; all of it is unattributed.
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
