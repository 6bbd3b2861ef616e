// When to read an energy counter; each read takes milliseconds of CPU time.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "meters/nvml/probes/edge_tracker.h"

namespace jouleprof::meters::nvml {

struct CounterPlan {
  Duration refresh{};         // between two updates
  bool every_update = false;  // short windows: one read after each update; else `rarely`
  HostTime first_burst{};     // begin of the first dense reads (devices take turns)
  Duration rarely = std::chrono::seconds(5);  // between two steady reads
};

// Begins with a second of reads 25 ms apart, so that the updates' phase can be fitted. Then reads
// rarely, half-way between two expected updates, where a late update is not mistaken for the next;
// or, for short windows, once after each. Six reads around an update follow its phase every 12 rare
// reads: device and host drift apart by some 30 ppm, 4 ms in two minutes.
class CounterSchedule {
 public:
  explicit CounterSchedule(const CounterPlan& plan) : plan_(plan), edges_(plan.refresh) {}

  // A read began at `before` and ended at `after`. `changed_since`: the begin of the earlier read
  // since which the value changed. Returns when to read next.
  HostTime next(HostTime before, HostTime after, std::optional<HostTime> changed_since);

  // How often to read from now on: as CounterPlan's.
  void set_pace(bool every_update, Duration rarely);

  // The value went back: the driver was reloaded, and its updates have a new phase.
  void restart(HostTime now);

  // How often a steady read is due.
  Duration period() const;

  const EdgeTracker& edges() const { return edges_; }

 private:
  HostTime steady(HostTime now) const;
  HostTime begin_burst(HostTime now);

  CounterPlan plan_;
  EdgeTracker edges_;
  HostTime burst_end_{};  // of the first dense reads
  bool learning_ = true;  // within them, or before
  int burst_left_ = 0;    // reads left around one update
  Duration burst_spacing_{};
  HostTime last_burst_{};
};

inline constexpr Duration kDenseSpacing = std::chrono::milliseconds(25);

}  // namespace jouleprof::meters::nvml
