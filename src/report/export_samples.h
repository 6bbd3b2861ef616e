// What a recording's sensors said, as CSV: every reading as it was read, in the order of time.
#pragma once

#include <ostream>

#include "model/recording.h"

namespace jouleprof::report {

// All three write a header and one row a reading. `time_unix_seconds` is wall time (nine decimals;
// empty when the recording holds no clock points), `time_seconds` counts from the begin of the
// work, or from the first reading where there was none; readings before it have a negative one.

// time_unix_seconds,time_seconds,device,domain,sensor,power_watts
void write_power_csv(std::ostream& out, const model::Recording& recording);

// time_unix_seconds,time_seconds,device,domain,sensor,read_seconds,energy_joules: the time is when
// the read ended and `read_seconds` how long it took; energy is the counter's own, not unwrapped.
void write_counter_csv(std::ostream& out, const model::Recording& recording);

// time_unix_seconds,time_seconds,device,domain,quantity,value: the quantity names its unit.
void write_gauge_csv(std::ostream& out, const model::Recording& recording);

// Windows that another tool measured, one row a domain of each; times and energies are that tool's:
// name,begin_unix_seconds,duration_seconds,device,domain,energy_joules,labels ("name=value;...").
void write_window_csv(std::ostream& out, const model::Recording& recording);

}  // namespace jouleprof::report
