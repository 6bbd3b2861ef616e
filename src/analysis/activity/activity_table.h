// What ran on one GPU, of all traced processes together: the regressors of attribution.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/activity/replay_time.h"
#include "analysis/timeline/time_base.h"
#include "base/result.h"
#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct ActivityTable {
  // Busy seconds of one class in one bin. Next to those of a class that has variants, how they are
  // spread over these: of variant v by the number classes.size() + v. And how much of those of
  // class k was beside other launches, by the number classes.size() + variants.size() + k.
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
  // Totals are of the part that was asked for.
  struct Class {
    model::KernelClass key;
    std::uint64_t launches = 0;
    double busy = 0;        // seconds
    double overlapped = 0;  // of them, beside other launches
    // Seconds between launches, in bins in which something ran: by its share of their busy time.
    double gap = 0;
    double whole_busy = 0;  // seconds, of all that was traced
    double whole_overlapped = 0;
  };
  // Launches of a class whose time tells them from others of it (kernel_variants.h).
  struct Variant {
    std::uint32_t kernel_class = 0;
    double busy = 0;  // seconds of the part
  };
  // What one class did for one scope of one process, in chunks that touch the part.
  struct Share {
    std::uint32_t kernel_class = 0;
    std::uint32_t variant = model::kNone;
    std::uint32_t trace = 0;  // index into Recording::traces
    std::uint32_t scope = model::kNone;
    std::uint64_t launches = 0;
    double busy = 0;
    double overlapped = 0;
  };

  // A layer, or a kernel of one, that was run alone, and what ran then. Totals leave that time out.
  struct Replay {
    struct Ran {
      std::uint64_t launches = 0;
      double busy = 0;  // seconds
    };
    std::uint32_t trace = 0;  // index into Recording::traces
    std::uint32_t layer = 0;  // of that trace
    bool of_kernel = false;
    double begin = 0;
    double end = 0;
    using ByClass = std::map<std::uint32_t, Ran>;
    static constexpr double kSlot = 0.02;  // seconds

    ByClass ran;
    std::vector<ByClass> slots;                       // one after the other from `begin` on
    std::map<std::uint32_t, std::uint32_t> variants;  // of a kernel's replay, by class

    std::uint32_t variant_of(std::uint32_t kernel_class) const {
      const auto found = variants.find(kernel_class);
      return found == variants.end() ? model::kNone : found->second;
    }
  };

  TimeBase time;
  ReplayTime replay_time;  // of the processes that used the device
  std::vector<Replay> replays;
  std::vector<Class> classes;
  std::vector<Variant> variants;  // of a class one after the other
  std::vector<Bin> bins;          // of all that was traced, and their entries
  std::vector<Entry> entries;
  std::vector<Share> shares;
  double begin = 0;  // of the part's first bin with anything in it
  double end = 0;    // of its last
  double busy = 0;   // seconds of the part in which anything ran ...
  double gap = 0;    // ... and between launches
  double whole_busy = 0;
  std::uint64_t launches = 0;
  std::uint64_t dropped = 0;
  std::uint64_t graph_launches = 0;
  std::uint64_t graph_expanded = 0;
  std::vector<std::string> problems;  // what the processes said went wrong

  bool empty() const { return end <= begin; }  // nothing ran in the part
  // The number in Entry of what ran beside others.
  std::size_t overlapped(std::size_t kernel_class) const {
    return classes.size() + variants.size() + kernel_class;
  }
  std::size_t end_of(std::size_t bin) const {
    return bin + 1 < bins.size() ? bins[bin + 1].first : entries.size();
  }
};

// The activity on `domain`; totals are of the bins that begin in [from, to), replays left
// out. A device is the domain's when its uuid is; one without a uuid, when the recording has one
// GPU only. Where processes ran at once, a bin's times are scaled down to the bin. Very long
// recordings get wider bins. Empty without activity. Errors: corrupt, when a chunk can't be decoded
// or names what is not there.
Result<ActivityTable> activity_on(const model::Recording& recording, const model::Domain& domain,
                                  std::optional<HostTime> from, std::optional<HostTime> to);

}  // namespace jouleprof::analysis
