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

// Holds a counter against the integral of the power of the same domain over at least 2 s, between
// two of its updates. Units differ by factors of 15 to 1000 (2^-16 J, 15.3 uJ, 1 mJ, 1 uJ), sensors
// by less than 2, so that the comparison may be rough: an agreement within 30 % is final. Another
// unit has to fit both halves of the time. A counter is refused only after 10 s in which it was by
// more than a factor of 2.5 off, alike in both halves; of 10 where samples see part of the time.
//
// It says nothing of a board below 5 W, of a counter that stands still, or where samples miss too
// much: these are no reasons to refuse one.
class UnitCheck {
 public:
  // In order of time, before any rescaling.
  void see(const model::CounterReading& reading);
  // By all that was seen, if it is enough. Final once it is not kUnverified. `hidden_joules`: what
  // the samples may miss of a load at a fixed rate.
  const UnitVerdict& judge(const PowerShape& shape, TimeBase time, const model::Sensor& counter,
                           const std::function<double()>& hidden_joules);

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

  std::vector<Update> updates(TimeBase time) const;

  UnitVerdict verdict_;
  std::vector<model::CounterReading> readings_;
};

// In words, for doctor.
std::string unit_text(const UnitVerdict& verdict);

}  // namespace jouleprof::analysis
