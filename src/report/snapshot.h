// What outputs show of a snapshot: which domains, and which figures by which names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace jouleprof::report {

// The names of all figures but the energy, in the order of the output's columns.
std::span<const std::string_view> snapshot_figures();

// A figure by its name, in the unit of the name; absent where it is not known.
std::optional<double> figure_of(const model::DomainSnapshot& domain, std::string_view name);

// What limits a GPU's clocks, in the words of clock_reasons.h; absent where it is not known.
std::optional<std::vector<std::string_view>> clock_limits_of(const model::DomainSnapshot& domain);

// The domains that are rows of the monitor: those with a sensor that are not within another domain.
std::vector<const model::DomainSnapshot*> rows_of(const model::Snapshot& snapshot);

// One line of status for a terminal, written over itself while a command runs.

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
