// Counters that stand still, and counters that count the same energy.
#pragma once

#include <functional>

#include "base/clock.h"
#include "meters/rapl/source.h"

namespace jouleprof::meters::rapl {

// Moves counters that would mislead from `source.counters` to `source.ignored`, with why. By name:
// dies of a package that has a zone itself. By their values, read again until each package has
// moved four times, for at most `longest` (zero: not at all):
//  - packages and DRAM that stand still (a guest, a stuck sensor);
//  - of counters of one kind that are equal (AMD's dies mirror their socket; one package read
//  through
//    several CPUs), all but the first; psys that equals a package. Values are equal where they stay
//    within 2 ms of the power; perf's counts begin when they are opened, so they are equal where
//    their difference stays the same to the quantum.
// What belongs to a package that is left out is left out, too. `sleep` waits between two reads.
void leave_out_misleading(Source& source, Duration longest,
                          const std::function<void(Duration)>& sleep);

}  // namespace jouleprof::meters::rapl
