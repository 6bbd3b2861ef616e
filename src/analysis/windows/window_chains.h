// Chains of adjacent windows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {

// A shorter window's energy has a bias towards the power around it: the same for each of a name.
// So has a shorter pause between two windows.
inline constexpr Duration kShortWindow = std::chrono::milliseconds{100};

// What a chain's windows do not cover, with the windows next to it. Pauses that follow one another
// closely are one, of which windows cover a part.
struct WindowPause {
  HostTime first{};  // begin of the window before
  HostTime begin{};
  HostTime end{};
  HostTime last{};  // end of the window after
  Duration open{};  // not covered by windows
};

// Windows of which each begins at another's end, or after a short pause.
struct WindowChain {
  HostTime begin{};
  HostTime end{};
  std::uint64_t count = 0;  // of windows
  std::size_t layer = 0;
  HostTime latest{};                // begin of the latest window
  std::vector<WindowPause> pauses;  // in order
};

// Takes a pause out of the sum that its chain is added to. A pause's energy lies between zero and
// twice its part of the energy of the time with the windows next to it. Where both of those are
// long enough for the sensor to resolve, its own interval may be narrower. Errors of pauses add
// linearly: a program's pauses are alike.
inline Result<void> leave_out(const WindowPause& pause, EnergyTimeline& timeline,
                              model::WindowSum& sum) {
  auto part = timeline.energy(pause.begin, pause.end);
  if (!part) return forward_error(part);
  const auto from = timeline.up_to(pause.first);
  const auto to = timeline.up_to(pause.last);
  if (!from || !to) return fail(Errc::kUnavailable, "no readings next to a pause");
  const double open = seconds(pause.open);
  Energy error = Energy::joules((*to - *from).joules() * open / seconds(pause.last - pause.first));
  const Duration resolved = timeline.resolution();
  const bool is_one = pause.open == pause.end - pause.begin;
  if (is_one && pause.begin - pause.first >= resolved && pause.last - pause.end >= resolved) {
    error = std::min(error, part->repeatability);
  }
  sum.leave_out(model::part_of(*part, open / seconds(pause.end - pause.begin)), error);
  return {};
}

// Adds a chain of the energy `whole`, without its pauses.
inline Result<void> add_chain(const WindowChain& chain, const model::Measurement& whole,
                              EnergyTimeline& timeline, model::WindowSum& sum) {
  if (chain.end - chain.begin < kShortWindow) {
    sum.add_alike(whole);
  } else {
    sum.add(whole, chain.layer, timeline.turns(chain.begin, chain.end),
            timeline.alike(chain.begin, chain.end));
  }
  for (const WindowPause& pause : chain.pauses) {
    if (auto done = leave_out(pause, timeline, sum); !done) return done;
  }
  return {};
}

// Combines windows of one name as they come. At an edge shared by two windows, their errors cancel;
// so a chain has the error of one window from its begin to its end, and that of its pauses. Chains
// of one layer do not overlap and have independent errors. Those of different layers may overlap,
// and then have the same error. There are as many layers as concurrent windows, if windows come in
// order of begin or end; at most 256, beyond which chains of a layer may overlap.
//
// O(log layers) per window; memory: one chain per layer, and at most one pause for each 5 ms of it.
// Thread safety: none.
class WindowChains {
 public:
  using Ended = std::function<void(const WindowChain&)>;

  // Calls `ended` with the chain that this window ends, if any.
  void add(HostTime begin, HostTime end, const Ended& ended) {
    // The layer with the latest end before `begin`: a window joins the chain that it continues.
    auto place = latest_.upper_bound(begin);
    if (place == latest_.begin() && latest_.size() < kMostLayers) {
      latest_.emplace(end, WindowChain{begin, end, 1, latest_.size(), begin, {}});
      return;
    }
    if (place != latest_.begin()) --place;
    auto node = latest_.extract(place);
    WindowChain& chain = node.mapped();
    const Duration gap = begin - chain.end;
    if (chain.count > 0 && gap >= Duration{} && gap < kShortWindow) {
      if (gap > Duration{}) add_pause(chain, begin, end);
      chain.end = end;
      chain.latest = begin;
      ++chain.count;
    } else {
      if (chain.count > 0) ended(chain);
      chain = {begin, end, 1, chain.layer, begin, {}};
    }
    node.key() = chain.end;
    latest_.insert(std::move(node));
  }

  // Ends the chains for which `is_over` holds, and calls `ended` with each.
  void end_if(const std::function<bool(const WindowChain&)>& is_over, const Ended& ended) {
    for (auto& [end, chain] : latest_) {
      if (chain.count == 0 || !is_over(chain)) continue;
      ended(chain);
      chain.pauses.clear();
      chain.count = 0;  // its end stays: overlapping windows go to another layer
    }
  }
  void end_all(const Ended& ended) {
    end_if([](const WindowChain&) { return true; }, ended);
  }

  // The chains that the next window may continue.
  template <typename Function>
  void for_each_open(Function function) {
    for (auto& [end, chain] : latest_) {
      if (chain.count > 0) function(chain);
    }
  }

 private:
  static constexpr Duration kClose = std::chrono::milliseconds{5};
  static constexpr std::size_t kMostLayers = 256;

  // Before the chain's next window.
  static void add_pause(WindowChain& chain, HostTime begin, HostTime end) {
    if (!chain.pauses.empty() && end - chain.pauses.back().first < kClose) {
      WindowPause& pause = chain.pauses.back();
      pause.open += begin - chain.end;
      pause.end = begin;
      pause.last = end;
    } else {
      chain.pauses.push_back({chain.latest, chain.end, begin, end, begin - chain.end});
    }
  }

  std::multimap<HostTime, WindowChain> latest_;  // by end, one per layer; count is 0 after it ended
};

}  // namespace jouleprof::analysis
