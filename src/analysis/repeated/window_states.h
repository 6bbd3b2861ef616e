// Which short windows are open at each time: the regressors of the power of repeated windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Names of which each window is so short, and which have so many windows, that their sum is more
// exact from all of them together than from each.
std::unordered_set<std::string_view> short_window_names(std::span<const model::Window> windows);

// Time in states: class 0 of the table is time outside of all short windows, each other one a set
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

}  // namespace jouleprof::analysis
