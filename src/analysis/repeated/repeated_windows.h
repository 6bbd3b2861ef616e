// The energy of many short windows of one name, from the power that they cause together.
//
// A window of a few milliseconds is shorter than what a power sensor averages, so single windows
// have wide intervals, and their sum a bias towards the power around them. But each time such a
// window runs, it moves the sensors' readings in the same way. Model: the power of a state (a set
// of open windows, or a time next to windows) is constant, and the sensors respond to it with their
// averaging windows and first-order lag. A regression on the states' times gives the power of each
// (power_regression.h). Power next to a stay's ends may differ from that in its middle. What the
// regression leaves over of each second, a drift of all power, counts by time.
//
// Samples' stamps jitter, which would pull the states' powers together; half of what is taken back
// for it is one more standard deviation. Only a driver's own buffer of stamped samples separates
// states, or a counter that is renewed within 2 ms and needs no samples (RAPL): a polled power may
// have been renewed at any time since the last one, which shifts all.
//
// The 95 % interval adds independent standard deviations: of the regression (cluster-robust), of
// the sensors' time constant (at least how far it is fitted from what is known: power that rises
// within windows passes for a longer one), 1.5 % of the energy for power that differs from window
// to window, and by how much the energy changes if power next to windows is that elsewhere. The
// last is large where work does not begin and end with its windows. Where other windows are next to
// an end, 1.4 % of the length of a sample, or of the time between two reads of a counter, of their
// power is added: what runs within them is not seen so finely.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Mean length: of longer windows the sum is known better.
inline constexpr Duration kLongestRepeated = std::chrono::seconds{1};

// Names of which each window is so short, and which have so many windows, that their sum is more
// exact from all of them together than from each.
std::unordered_set<std::string_view> short_window_names(std::span<const model::Window> windows);

// Which short windows are open at each time: the regressors of the power of repeated windows. Time
// in states: class 0 of the table is time outside of all short windows, each other one a set
// of names with open windows. Time next to windows has variants of class 0, by the distance to the
// nearest window's end or begin: so work next to windows need not count as theirs.
struct WindowStates {
  // One bin for each stay in a state, in order of time. The variant's entry follows the class's.
  ActivityTable table;
  double first = 0;  // begin of the first short window, in seconds of table.time
  double last = 0;   // end of the last one

  // Adds the seconds of [begin, end), in seconds of table.time, to those of classes and variants,
  // by their numbers in ActivityTable::Entry.
  void add_time(double begin, double end, std::vector<double>& by_entry) const;
  std::size_t entries() const { return table.classes.size() + table.variants.size(); }
};

// The states from a second before the first short window to a second after the last one. At most 40
// classes: the rarest sets of names share one. Empty without short windows. O(n log n).
WindowStates window_states(std::span<const model::Window> windows,
                           const std::unordered_set<std::string_view>& names);

class RepeatedWindows {
 public:
  // Whether a timeline with these sensors has what the regression needs.
  static bool is_possible(const TimelineSensors& sensors);

  // Fits the windows of one timeline from what its sensors observed `within` a time (absent:
  // always). `windows`: all of that time and the second around it; they outlive the result. Absent
  // where it is not possible, without names of short windows, or where too little of them is
  // observed.
  static std::optional<RepeatedWindows> fit(std::span<const model::Window> windows,
                                            EnergyTimeline& timeline,
                                            const std::optional<RecordedSpan>& within = {});

  RepeatedWindows(RepeatedWindows&&) noexcept;
  RepeatedWindows& operator=(RepeatedWindows&&) noexcept;
  ~RepeatedWindows();

  // The energy of these windows, all of one name. Absent where the name's windows are not short, or
  // the timeline has no energy for their time.
  std::optional<model::Measurement> sum(std::span<const model::Window* const> windows) const;

 private:
  struct State;
  explicit RepeatedWindows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace jouleprof::analysis
