// What a recording's sensors said, as CSV: every reading as it was read, in the order of time; the
// energies of windows; and the rows of the monitor.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "analysis/run.h"
#include "base/result.h"
#include "model/profile.h"
#include "model/recording.h"
#include "model/snapshot.h"
#include "report/figures.h"

namespace jouleprof::report {

inline constexpr analysis::PartSpan kAll{HostTime::min(), HostTime::max()};

// The first three write a header and one row a reading of `span`. `time_unix_seconds` is wall time
// (nine decimals; empty when the recording holds no clock points), `time_seconds` counts from the
// begin of the work, or from the first reading where there was none; readings before it have a
// negative one.
//
// time_unix_seconds,time_seconds,device,domain,sensor,power_watts,provenance
void write_power_csv(std::ostream& out, const model::Recording& recording,
                     const analysis::PartSpan& span = kAll);

// time_unix_seconds,time_seconds,device,domain,sensor,read_seconds,energy_joules,provenance: the
// time is when the read ended and `read_seconds` how long it took; energy is the counter's own, not
// unwrapped.
void write_counter_csv(std::ostream& out, const model::Recording& recording,
                       const analysis::PartSpan& span = kAll);

// time_unix_seconds,time_seconds,device,domain,quantity,value,provenance: the quantity names its
// unit.
void write_gauge_csv(std::ostream& out, const model::Recording& recording,
                     const analysis::PartSpan& span = kAll);

// One row a domain of each window: name,begin_unix_seconds,begin_seconds,duration_seconds,device,
// domain,energy_joules,interval_low_joules,interval_high_joules,repeatability_joules,provenance,
// reason,labels ("name=value;..."). A window's own process, thread and clock are its labels "pid",
// "thread" and "edges" ("host" or "device"). Imported windows come last; their times and energies
// are another tool's, so interval, repeatability and provenance are empty, and what that tool had
// no figure for has no row.
// A part has the windows that begin in it; imported windows without a time are in no part.
void write_window_csv(std::ostream& out, const model::Recording& recording,
                      const WindowEnergyOf& energy_of,
                      const std::optional<analysis::PartSpan>& part = {});

// --- The monitor's CSV ---

// A header, then a row a device. What is absent is an empty field.
std::string snapshot_csv_header();
std::string snapshot_csv_rows(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
