// One line of status for a terminal, written over itself while a command runs.
#pragma once

#include <string>

#include "report/snapshot.h"

namespace jouleprof::report {

// "1 min 23 s  gpu0 312.4 W  package-0 81.0 W  12.34 kJ": at most `width` columns, no line end, no
// control character. Devices that do not fit are counted ("+3 more"), never cut in a figure. Energy
// is shown where every device with a power has it. What is not measured says so.
std::string live_line(const Snapshot& snapshot, int width);

}  // namespace jouleprof::report
