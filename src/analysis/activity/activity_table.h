// The activity on one GPU, of all traced processes: the regressors of attribution.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/activity/replay_time.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "base/result.h"
#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct ActivityTable {
  // Busy seconds in one bin, of what `kernel_class` numbers:
  //  - below classes.size(): a kernel signature;
  //  - classes.size() + v: variant v of a signature in the same bin, part of the signature's time;
  //  - overlapped(k): the time of signature k while other launches ran, part of its time.
  struct Entry {
    std::uint32_t kernel_class = 0;
    float busy = 0;
  };
  // [begin, begin + width), in seconds of `time`; bins don't overlap and lie in order.
  struct Bin {
    double begin = 0;
    double width = 0;
    std::size_t first = 0;  // its entries go up to the next bin's
  };
  // Totals of the requested part of the recording.
  struct Class {
    model::KernelClass key;
    std::uint64_t launches = 0;
    double busy = 0;        // seconds
    double overlapped = 0;  // of `busy`, while other launches ran
    // Idle seconds between launches, in bins in which something ran: its share by busy time.
    double idle_between = 0;
    double whole_busy = 0;  // seconds, of the whole trace
    double whole_overlapped = 0;
    // The mean time of a launch, over the whole trace without re-runs.
    std::uint64_t whole_launches = 0;
    double launches_busy = 0;
    double launch() const {
      return whole_launches > 0 ? launches_busy / static_cast<double>(whole_launches) : 0;
    }
  };
  // Launches of a signature that take clearly different times from its others (kernel_variants.h).
  struct Variant {
    std::uint32_t kernel_class = 0;
    double busy = 0;    // seconds of the part
    double launch = 0;  // mean seconds of one launch, of the whole trace
  };
  // The activity of one signature for one scope of one process, in chunks that touch the part.
  struct ScopeTotal {
    std::uint32_t kernel_class = 0;
    std::uint32_t variant = model::kNone;
    std::uint32_t trace = 0;  // index into Recording::traces
    std::uint32_t scope = model::kNone;
    std::uint64_t launches = 0;
    double busy = 0;
    double overlapped = 0;
  };

  // An isolated re-run of a kernel, and the launches in it. Totals exclude that time.
  struct Replay {
    struct Ran {
      std::uint64_t launches = 0;
      double busy = 0;  // seconds
    };
    std::uint32_t trace = 0;  // index into Recording::traces
    double begin = 0;
    double end = 0;
    // What is known of one of the kernel's sizes; 0: nothing.
    double clock = 0;              // of the SMs, in hertz
    std::uint64_t of_program = 0;  // launches that it stands for
    using ByClass = std::map<std::uint32_t, Ran>;
    static constexpr double kSlot = 0.02;  // seconds

    ByClass ran;
    std::vector<ByClass> slots;                       // one after the other from `begin` on
    std::map<std::uint32_t, std::uint32_t> variants;  // by signature

    std::uint32_t variant_of(std::uint32_t kernel_class) const {
      const auto found = variants.find(kernel_class);
      return found == variants.end() ? model::kNone : found->second;
    }
  };

  TimeBase time;
  ReplayTime replay_time;  // of the processes that used the device
  std::vector<Replay> replays;
  std::vector<Class> classes;
  std::vector<std::vector<std::uint32_t>> numbers;  // by trace: of each of its signatures
  std::vector<Variant> variants;                    // sorted by signature
  std::vector<Bin> bins;                            // of the whole trace, with their entries
  std::vector<Entry> entries;
  std::vector<ScopeTotal> scope_totals;
  double begin = 0;         // of the part's first non-empty bin
  double end = 0;           // of its last
  double busy = 0;          // seconds of the part in which launches ran ...
  double idle_between = 0;  // ... and between launches
  double whole_busy = 0;
  std::uint64_t launches = 0;
  std::uint64_t dropped = 0;
  std::uint64_t graph_launches = 0;
  std::uint64_t graph_expanded = 0;
  std::uint64_t memsets_left_out = 0;
  std::vector<std::string> problems;  // reported by the traced processes

  bool empty() const { return end <= begin; }  // nothing ran in the part
  // The number in Entry of a signature's overlapped time.
  std::size_t overlapped(std::size_t kernel_class) const {
    return classes.size() + variants.size() + kernel_class;
  }
  std::size_t end_of(std::size_t bin) const {
    return bin + 1 < bins.size() ? bins[bin + 1].first : entries.size();
  }
};

// The activity on `domain`; totals are of the bins that begin in [from, to), without re-runs.
// Devices are matched by UUID; a device without one is the recording's only GPU. Where processes
// overlap, their times in a bin are scaled to its length. Very long recordings get wider bins.
// Empty without activity. Errors: corrupt, when a chunk cannot be decoded or refers to a missing
// entry.
Result<ActivityTable> activity_on(const model::Recording& recording, const model::Domain& domain,
                                  std::optional<HostTime> from, std::optional<HostTime> to);

}  // namespace jouleprof::analysis
