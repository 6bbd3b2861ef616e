// From what an energy counter said to the energy that went by, and whether it counts in the unit
// that its interface states.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeline/sensors/observed_sensor.h"
#include "analysis/timeline/sensors/power_shape.h"
#include "base/clock.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// A reading after unwrapping. `energy` counts from the first reading and never decreases.
// Only differences within one segment are known: between two segments the counter was lost sight
// of (a reset, a wrap that cannot be counted), and `energy` stands still there.
struct CounterPoint {
  HostTime before{};
  HostTime after{};
  Energy energy;
  std::uint32_t segment = 0;
};

// Something that a reader of the result should know.
struct Note {
  HostTime at{};  // of the first one
  std::string text;
  HostTime last = at;     // HostTime::max(): it holds of all readings
  std::size_t count = 1;  // of one text
};

// No board draws more than this; a counter that says so did not count.
inline constexpr Power kAbsurdPower = Power::watts(20e3);
// What a device draws at most, of its power limit.
inline constexpr double kGainOfLimit = 1.5;

// What drivers return instead of a value.
bool is_no_value(Energy raw);

// Unwraps one counter's readings as they come.
//
// - A decrease is a wrap when the counter's range is known, the power that a wrap would mean is
//   plausible, and no more than one wrap fits between the two reads at 1 kW, or at twice the
//   recent power. Any other decrease is a reset. An interval in which a wrap could be unobserved is
//   split too.
// - Readings that cannot be true are dropped and noted: no-value patterns (all bits set, in
//   millijoules or in thousandths of one), and single jumps of more than kAbsurdPower, than ten
//   times the recent power and 1 kW, or than a device draws at most by its power limit.
// - Decreases and absurd jumps are doubtful until the next reading: if it continues from before,
//   one reading was wrong; if it continues from the doubtful one, the counter was reset; if both
//   are plausible, the energy in between is unknown. A doubtful last reading is not used, which
//   take_doubt() says.
class CounterUnwrapper {
 public:
  explicit CounterUnwrapper(const model::SensorTraits& traits) : traits_(traits) {}

  // Appends to `out` the points that `reading` makes certain: none, one, or two. Removes the last
  // one where `reading` shows that it was wrong.
  void push(const model::CounterReading& reading, std::vector<CounterPoint>& out);

  // The highest power limit of the device so far.
  void set_limit(Power limit) { most_ = std::min(limit * kGainOfLimit, kAbsurdPower); }

  // The notes since the last call.
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }
  // Once no reading follows: of a doubtful last one, at the first call.
  std::optional<Note> take_doubt();

 private:
  enum class Step { kForward, kReset, kImplausible };
  // A reading and what was known there.
  struct Accepted {
    model::CounterReading reading;
    Energy energy;                // since the first reading
    std::optional<Power> recent;  // power lately
    HostTime recent_at;           // the change up to where, and the energy there
    Energy recent_energy;
  };

  Step judge(const Accepted& from, const model::CounterReading& to, Energy& change) const;
  // Whether the power is within a factor of three of the recent one.
  static bool is_likely(const Accepted& from, const model::CounterReading& to, Energy change);
  void resolve(const model::CounterReading& doubtful, const model::CounterReading& reading,
               std::vector<CounterPoint>& out);
  bool drop_high(const model::CounterReading& reading, std::vector<CounterPoint>& out);
  void accept(const model::CounterReading& reading, Energy change, std::vector<CounterPoint>& out);
  void split(const model::CounterReading& reading, const char* why, std::vector<CounterPoint>& out);

  model::SensorTraits traits_;
  Power most_ = kAbsurdPower;
  std::optional<Accepted> last_;
  std::optional<Accepted> previous_;  // before last_, in its segment
  // A decrease or an absurd jump, until the next reading decides.
  std::optional<model::CounterReading> doubtful_;
  std::uint32_t segment_ = 0;
  bool doubt_is_noted_ = false;
  std::vector<Note> notes_;
};

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
