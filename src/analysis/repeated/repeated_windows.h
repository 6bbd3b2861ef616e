// The energy of many short windows of one name, from the power that they cause together.
//
// A window of a few milliseconds is shorter than what a power sensor averages, so single windows
// have wide intervals, and their sum a bias towards the power around them. But each time such a
// window runs, it moves the sensors' readings in the same way. Model: the power of a state (a set
// of open windows, or a time next to windows) is constant, and the sensors respond to it with their
// averaging windows and first-order lag. A regression on the states' times gives the power of each
// (power_regression.h). What it leaves over of each second, a drift of all power, counts by time.
//
// The 95 % interval adds independent standard deviations: of the regression (cluster-robust), of
// the sensors' time constant, 1.5 % of the energy for power that differs from window to window, and
// by how much the energy changes if power next to windows is that elsewhere. The last is large
// where work does not begin and end with its windows.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

class RepeatedWindows {
 public:
  // Of one GPU's timeline, from what its sensors observed `within` a time (absent: always).
  // `windows`: all of that time and the second around it; they outlive the result. Absent without
  // names of short windows (window_states.h), or where the sensor observes too little of them.
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
