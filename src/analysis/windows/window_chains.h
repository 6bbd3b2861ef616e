// Windows that touch, taken together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "base/clock.h"

namespace jouleprof::analysis {

// Windows of which each begins where another ends, or no more than a thousandth of its own length
// after that.
struct WindowChain {
  HostTime begin{};
  HostTime end{};
  Duration covered{};       // by the windows; the rest are gaps
  std::uint64_t count = 0;  // of windows
  std::size_t layer = 0;

  // The covered part of it, at most 1.
  double share() const;
  // Half of a 95 % interval of what the gaps have of its joules, which are anything from nothing to
  // twice their share.
  double gap_error(double joules) const { return joules * (1 - share()); }
};

// What windows that cover the part `share` of a stretch may have of its joules, more or less than
// that part: half of a 95 % interval, from a standard deviation of E c (1 - c) x 1.15, which is
// that of a share anywhere between 0 and E where c is a half.
double open_error(double joules, double share);

// Puts windows of one name together as they come. What one of two windows has too much at an edge
// that they share the other has too little; so a chain errs as one window does that reaches from
// its begin to its end. Chains of one layer do not overlap, and err apart from each other; those of
// different layers may overlap, and then err alike. There are as many layers as windows are open at
// once, where windows come in order of their begins or ends; at most 256, beyond which layers
// overlap in themselves.
//
// O(log layers) a window; memory: one chain a layer. Thread safety: none.
class WindowChains {
 public:
  using Ended = std::function<void(const WindowChain&)>;

  // A chain that this ends is handed to `ended`.
  void add(HostTime begin, HostTime end, const Ended& ended);

  // Ends the chains for which `is_over` holds, and hands them to `ended`.
  void end_if(const std::function<bool(const WindowChain&)>& is_over, const Ended& ended);
  void end_all(const Ended& ended);

  // Those that the next window may continue.
  template <typename Function>
  void for_each_open(Function function) const {
    for (const auto& [end, chain] : latest_) {
      if (chain.count > 0) function(chain);
    }
  }

 private:
  std::multimap<HostTime, WindowChain>
      latest_;  // by end: each layer's; one that ended has no count
};

}  // namespace jouleprof::analysis
