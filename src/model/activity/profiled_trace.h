// A trace that another profiler wrote: what ran when, and its text, to which a report adds
// energies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "model/domain.h"

namespace jouleprof::model {

struct ProfiledTrace {
  // One kernel, copy or set.
  struct Launch {
    HostTime begin{};
    Duration duration{};
    std::uint32_t kernel_class = 0;
    std::uint32_t device = 0;
    std::uint32_t stream = 0;
    std::uint32_t launched = kNone;  // index into calls
  };
  // The call that launched it.
  struct Call {
    Duration ts{};
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;
  };

  Trace trace;                   // the activity, for attribution
  std::vector<Launch> launches;  // in the file's order
  std::vector<Call> calls;
  std::vector<DomainId> domains;  // by device of the file; devices beyond them have none
  ClockMap clocks;
  RealTime base{};                   // of the file's times
  RealTime begin = RealTime::max();  // of all events
  RealTime end = RealTime::min();
  bool cut_off = false;
  // What was mended in its text: pieces that were no UTF-8, and control characters within strings.
  std::size_t broken_text = 0;
  std::size_t control_characters = 0;
};

// A part of the trace's text. All pieces in their order are the file, byte for byte.
struct TracePiece {
  enum class Kind {
    kText,  // anything but the events below
    kLaunch,
    kRange,  // on the CPU: an operator, a Python function or module, a user's range
    kLast,   // no text: after the last event, before the end of the list
    kEnd,    // the end of the file; its text closes what a file that is cut off leaves open
  };
  Kind kind = Kind::kText;
  std::string_view text;
  std::string_view args;   // of an event: the object "args" within its text; empty: it has none
  bool any_event = false;  // the list held an event so far
  std::size_t launch = 0;  // of kLaunch: index into launches
  Duration ts{};           // of kRange, since the file's base time
  Duration duration{};
  std::optional<std::uint32_t> thread = std::nullopt;  // of kRange; absent: it launched nothing
};

}  // namespace jouleprof::model
