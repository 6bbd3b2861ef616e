// Attribution of a domain's dynamic energy to processes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jouleprof/units.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

inline bool is_gpu(model::DomainKind kind) {
  return kind == model::DomainKind::kGpu || kind == model::DomainKind::kGpuMemory;
}

// A domain's energy above idle over the span, to be split.
struct DomainEnergy {
  model::Domain domain;
  Energy active;
  // The energy above idle of a part of the span; over all parts about `active`.
  std::function<Energy(HostTime, HostTime)> part;
};

// One domain's active energy by process. The parts sum to it exactly.
struct DomainSplit {
  std::vector<Energy> shares;  // by the recording's processes, in its order
  Energy within_command;       // of the command's processes, of which of them is unknown
  Energy others;
  Energy unattributed;
  // A part of the unattributed, and its time: processes of the command and others can both have
  // worked.
  Energy contested;
  Duration contested_time{};
  // Shares have bounds on boards alone, the command on what follows CPU time, too.
  std::vector<model::DivisionBounds> bounds{};
  std::optional<model::DivisionBounds> command_bounds{};
};

// Energy at the held level. The parts sum to it exactly.
struct HeldSplit {
  std::vector<Energy> shares;  // by the recording's processes, in its order
  Energy others;
  Energy unowned;  // of no process that is known
  // Lists show only now and then who holds a board.
  std::vector<model::DivisionBounds> bounds{};
  model::DivisionBounds command_bounds{};
};

// A slice between two readings, and what each process took in it, in the recording's order.
using OnPortions = std::function<void(HostTime begin, HostTime end, std::span<const Energy>)>;
// Takes the use of one process: its number in the recording's list, and how long it used something.
using OnUse = std::function<void(HostTime begin, HostTime end, std::size_t process, Duration)>;

// The resource use of the recording's processes within a span.
struct ProcessUse {
  std::vector<std::optional<Duration>> cpu_time;  // in the recording's order; unseen children's too
  Duration machine_cpu_time{};                    // of all processes, where it was read
  std::vector<std::optional<double>> compute_utilisation;  // time-weighted mean of its readings
};

// Attributes active energy slice by slice, from one round of process readings to the next. Slices
// share the span's active energy in proportion to their own.
//
// CPU, its parts and DRAM: within a slice in proportion to CPU time. The rest of the machine's busy
// time belongs to other processes. DRAM follows CPU time, too: its power above idle is that of
// traffic, which only running processes cause. Without readings of the whole machine, all is
// unattributed. CPU time is read in whole ticks; what the command can have in broken ones is in its
// bounds.
//
// GPU, where kernels were not traced: as board_use() has it.
// Platform and module domains contain more than processes' work; all of it is unattributed.
class ProcessSplitter {
 public:
  ProcessSplitter(const model::Recording& recording, HostTime begin, HostTime end);

  DomainSplit split(const DomainEnergy& domain, const OnPortions& also = {}) const;
  // Divides the energy by which contexts hold a board among the processes that do, in equal parts
  // at any time. `held_time`: for how long of an interval the board was held.
  using HeldTime = std::function<Duration(HostTime, HostTime)>;
  HeldSplit split_held(const model::Domain& domain, Energy held, const HeldTime& held_time,
                       const OnUse& also = {}) const;
  const ProcessUse& use() const { return use_; }
  // The CPU time of the tree's processes, slice by slice.
  void each_cpu_time(const OnUse& take) const;

 private:
  void add_cpu_time(const model::Recording& recording);
  void add_machine_time(const model::Recording& recording);

  template <typename Divide, typename EdgesOf>
  DomainSplit split_slices(const DomainEnergy& domain, std::size_t slices, const Divide& divide,
                           const EdgesOf& edges_of) const;
  DomainSplit split_board(const DomainEnergy& domain, const OnPortions& also) const;

  const model::Recording& recording_;
  std::vector<HostTime> edges_;              // of the slices: one more than there are slices
  std::vector<std::vector<double>> cpu_;     // seconds, by slice and process (empty: none)
  std::vector<std::optional<double>> busy_;  // seconds of the whole machine, by slice
  double unread_ = 0;    // seconds of CPU time that the command can have on top of its readings
  double overread_ = 0;  // and of those, what it can have had before the span
  ProcessUse use_;
};

}  // namespace jouleprof::analysis
