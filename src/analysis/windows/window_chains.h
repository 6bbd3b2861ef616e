// Chains of adjacent windows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"
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
  double share() const {
    return end > begin ? std::min(seconds(covered) / seconds(end - begin), 1.0) : 1.0;
  }
  // Half of the 95 % interval of the pauses' energy, of `joules` of the chain: between zero and
  // twice their share of the time.
  double gap_error(double joules) const { return joules * (1 - share()); }
};

// The error of the energy of windows that cover the part `share` of an interval with E joules, if
// it is estimated as that part c: half of a 95 % interval, from a standard deviation of E c (1 - c)
// x 1.15, which for c = 1/2 is that of a uniform distribution between 0 and E.
inline double open_error(double joules, double share) {
  const double open = share - std::floor(share);
  return kErrors.normal95 * 1.15 * joules * open * (1 - open);
}

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
  void add(HostTime begin, HostTime end, const Ended& ended) {
    // The layer with the latest end before `begin`: a window joins the chain that it continues.
    auto place = latest_.upper_bound(begin);
    if (place == latest_.begin() && latest_.size() < kMostLayers) {
      latest_.emplace(end, WindowChain{begin, end, end - begin, 1, latest_.size()});
      return;
    }
    if (place != latest_.begin()) --place;
    auto node = latest_.extract(place);
    WindowChain& chain = node.mapped();
    const Duration gap = begin - chain.end;
    if (chain.count > 0 && gap >= Duration{} && gap <= (end - begin) / kGapPart) {
      chain.end = end;
      chain.covered += end - begin;
      ++chain.count;
    } else {
      if (chain.count > 0) ended(chain);
      chain = {begin, end, end - begin, 1, chain.layer};
    }
    node.key() = chain.end;
    latest_.insert(std::move(node));
  }

  // Ends the chains for which `is_over` holds, and calls `ended` with each.
  void end_if(const std::function<bool(const WindowChain&)>& is_over, const Ended& ended) {
    for (auto& [end, chain] : latest_) {
      if (chain.count == 0 || !is_over(chain)) continue;
      ended(chain);
      chain.count = 0;  // its end stays: overlapping windows go to another layer
    }
  }
  void end_all(const Ended& ended) {
    end_if([](const WindowChain&) { return true; }, ended);
  }

  // The chains that the next window may continue.
  template <typename Function>
  void for_each_open(Function function) const {
    for (const auto& [end, chain] : latest_) {
      if (chain.count > 0) function(chain);
    }
  }

 private:
  static constexpr int kGapPart = 1000;
  static constexpr std::size_t kMostLayers = 256;

  std::multimap<HostTime, WindowChain> latest_;  // by end, one per layer; count is 0 after it ended
};

}  // namespace jouleprof::analysis
