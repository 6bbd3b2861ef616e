// One line of status for a terminal, written over itself while a command runs.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace jouleprof::report {

// "1 min 23 s  gpu0 312.4 W  package-0 81.0 W  12.34 kJ": at most `width` columns, no line end, no
// control character. Shows the devices that the command can see; those that do not fit are counted
// ("+3 more"), and no figure is cut. The energy is the sum over all of them, and is left out where
// one with a power has none. Simulated and estimated figures are marked as such.
std::string live_line(const model::Snapshot& snapshot, int width);

// The monitor's table for people.

// `header` and rows have the same columns; a row a device.
std::string monitor_table_header();
std::string monitor_table_rows(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
