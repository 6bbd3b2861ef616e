// Chains of adjacent windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "base/clock.h"

namespace jouleprof::analysis {

// Adjacent windows: each begins at another's end, or at most a thousandth of its own length later.
struct WindowChain {
  HostTime begin{};
  HostTime end{};
  Duration covered{};       // by the windows; the rest are pauses
  std::uint64_t count = 0;  // of windows
  std::size_t layer = 0;

  // The covered part of it, at most 1.
  double share() const;
  // Half of the 95 % interval of the pauses' energy, of `joules` of the chain: between zero and
  // twice their share of the time.
  double gap_error(double joules) const { return joules * (1 - share()); }
};

// The error of the energy of windows that cover the part `share` of an interval with E joules, if
// it is estimated as that part c: half of a 95 % interval, from a standard deviation of E c (1 - c)
// x 1.15, which for c = 1/2 is that of a uniform distribution between 0 and E.
double open_error(double joules, double share);

// Combines windows of one name as they come. At an edge shared by two windows, their errors cancel;
// so a chain has the error of one window from its begin to its end. Chains of one layer do not
// overlap and have independent errors. Those of different layers may overlap, and then have the
// same error. There are as many layers as concurrent windows, if windows come in order of begin or
// end; at most 256, beyond which chains of a layer may overlap.
//
// O(log layers) per window; memory: one chain per layer. Thread safety: none.
class WindowChains {
 public:
  using Ended = std::function<void(const WindowChain&)>;

  // Calls `ended` with the chain that this window ends, if any.
  void add(HostTime begin, HostTime end, const Ended& ended);

  // Ends the chains for which `is_over` holds, and calls `ended` with each.
  void end_if(const std::function<bool(const WindowChain&)>& is_over, const Ended& ended);
  void end_all(const Ended& ended);

  // The chains that the next window may continue.
  template <typename Function>
  void for_each_open(Function function) const {
    for (const auto& [end, chain] : latest_) {
      if (chain.count > 0) function(chain);
    }
  }

 private:
  std::multimap<HostTime, WindowChain> latest_;  // by end, one per layer; count is 0 after it ended
};

}  // namespace jouleprof::analysis
