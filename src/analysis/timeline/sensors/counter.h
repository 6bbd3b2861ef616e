// From what an energy counter said to the energy that went by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// What drivers return instead of a value.
bool is_no_value(Energy raw);

// Unwraps one counter's readings as they come.
//
// - A decrease is a wrap when the counter's range is known, the power that a wrap would mean is
//   plausible, and no more than one wrap fits between the two reads at the recent power.
//   Any other decrease is a reset. An interval in which a wrap could be unobserved is split too.
// - Readings that cannot be true are dropped and noted: no-value patterns (all bits set, in
//   millijoules or in thousandths of one), and single jumps of more than kAbsurdPower, or than ten
//   times the recent power and 1 kW.
// - Decreases and absurd jumps are doubtful until the next reading: if it continues from before,
//   one reading was wrong; if it continues from the doubtful one, the counter was reset; if both
//   are plausible, the energy in between is unknown. A doubtful last reading is not used.
class CounterUnwrapper {
 public:
  explicit CounterUnwrapper(const model::SensorTraits& traits) : traits_(traits) {}

  // Appends to `out` the points that `reading` makes certain: none, one, or two. Removes the last
  // one where `reading` shows that it was wrong.
  void push(const model::CounterReading& reading, std::vector<CounterPoint>& out);

  // Those since the last call.
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }

 private:
  enum class Step { kForward, kReset, kImplausible };
  // A reading and what was known there.
  struct Accepted {
    model::CounterReading reading;
    Energy energy;                // since the first reading
    std::optional<Power> recent;  // power lately
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
  std::optional<Accepted> last_;
  std::optional<Accepted> previous_;  // before last_, in its segment
  // A decrease or an absurd jump, until the next reading decides.
  std::optional<model::CounterReading> doubtful_;
  std::uint32_t segment_ = 0;
  std::vector<Note> notes_;
};

}  // namespace jouleprof::analysis
