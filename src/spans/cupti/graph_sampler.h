// When launches of CUDA graphs are recorded node by node, and when, cheaply, as one record each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace jouleprof::cupti {

// One record each from the start (CUPTI crashes when this is enabled only after a graph was made
// executable); node by node for a few launches now and then: 20 ms after a graph was first
// launched, 1 s later, 2 s, ... and finally every minute; sooner again after the launch of a graph
// without recorded nodes. Two such times never begin within one second.
class GraphSampler {
 public:
  // Counts since the process's start.
  struct Seen {
    std::uint64_t launches = 0;      // of graphs
    std::size_t unknown_graphs = 0;  // launched, and their nodes never seen
  };

  // Whether node by node from now on.
  bool nodes(HostTime now, const Seen& seen);

  // When to call nodes() again; absent: any time.
  std::optional<HostTime> next() const { return next_; }

 private:
  bool begin(HostTime now, const Seen& seen);
  bool end(HostTime now);

  bool nodes_ = false;
  std::optional<HostTime> next_;
  HostTime begun_{};
  std::uint64_t launches_before_ = 0;
  std::size_t unknown_before_ = 0;
  Duration interval_ = std::chrono::seconds{1};
};

}  // namespace jouleprof::cupti
