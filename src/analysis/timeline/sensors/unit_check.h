// Whether an energy counter counts in the unit that its interface states.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/sensors/observed_power.h"
#include "analysis/timeline/sensors/power_shape.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

struct UnitVerdict {
  enum class State {
    kUnverified,  // not yet: too short, too little power, or the power sensor contradicts itself
    kAgrees,      // within 30 % of the power's integral
    kRescaled,    // it counts in another known unit, and its readings are multiplied by `factor`
    kRefused,     // no known unit fits; the counter is not used
  };
  State state = State::kUnverified;
  double factor = 1;
  double ratio = 0;    // counted by integrated energy, as read; 0: not compared
  double seconds = 0;  // that were compared
  std::string reason;  // in a sentence; empty while nothing was compared
};

// What the samples do not show of the time outside of their windows, in joules.
struct UnseenEnergy {
  double locked = 0;  // either way, of a pattern that recurs
  double more = 0;    // that a load at the sensor's own rate may have drawn in addition, or ...
  double less = 0;    // saved, where all samples have one value
};

// Holds a counter against the integral of the power of the same domain over at least 2 s, between
// two of its updates. Units differ by factors of 15 to 1000 (2^-16 J, 15.3 uJ, 1 mJ, 1 uJ), sensors
// by less than 1.3, so that the comparison may be rough: an agreement within 30 % is final. A
// greater difference has to be twice what noise explains, and alike in both halves of the energy.
// The counter is then rescaled where a known unit fits, and refused where none does.
//
// It says nothing of a board below 5 W, of a counter that stands still, or where samples miss too
// much: these are no reasons to refuse one.
class UnitCheck {
 public:
  // In order of time, before any rescaling.
  void see(const model::CounterReading& reading);
  // By all that was seen, if it is enough. Final once it is not kUnverified.
  const UnitVerdict& judge(const PowerShape& shape, TimeBase time, const model::Sensor& counter,
                           const std::function<UnseenEnergy(double from, double to)>& unseen);

  const UnitVerdict& verdict() const { return verdict_; }
  // What was seen until the verdict, to be read anew after rescaling; empty after take_readings().
  std::vector<model::CounterReading> take_readings() { return std::exchange(readings_, {}); }
  std::size_t pending() const { return readings_.size(); }

 private:
  struct Update {
    double at = 0;  // seconds; known to within `half`
    double half = 0;
    double joules = 0;
  };

  std::vector<Update> updates(TimeBase time, const model::Sensor& counter) const;

  UnitVerdict verdict_;
  std::vector<model::CounterReading> readings_;
};

// In words, for doctor.
std::string unit_text(const UnitVerdict& verdict);

}  // namespace jouleprof::analysis
