// The clocks of a job's machines against each other, by the collectives that all of them took part
// in, and the waiting of ranks of several machines for each other. Private to this folder.
//
// No rank ends a synchronising operation before all have begun it. For call n, with the time of
// machine A, and o the time of machine B less that of A at the same instant:
//   latest begin on B - first end on A  <=  o  <=  first end on B - latest begin on A
// The estimate of o is a line through the differences of the first ends: offset and drift. These
// bounds say how far the truth can be from it, whatever the order in which the ends came.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/job/job_sums.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {

// One operation on the ranks of one machine, in its host time.
struct HostCall {
  std::string_view kernel;  // of HostCalls::recording
  HostTime latest_begin{};
  HostTime first_end{};
};

// What one machine's ranks ran in collectives.
struct HostCalls {
  std::string boot_id;
  std::string host;
  // The traces and domains of all recordings of the machine that have collectives.
  model::Recording recording;
  std::vector<model::ActivityProfile> activity;
  std::vector<std::vector<HostCall>> streams;  // in the order of their first calls
  std::string problem;                         // why there are none
};

// Absent where no recording has collectives. Errors: as collective_calls()'s.
Result<std::optional<HostCalls>> host_calls(std::span<const Placed> placed);

// Host time of a machine as host time of the reference: t - offset - drift * (t - from).
struct ClockLine {
  HostTime from{};
  double offset = 0;  // seconds, at `from`
  double drift = 0;
  double error = 0;     // seconds: bound of the line's distance from the truth
  double residual = 0;  // seconds: root mean square of the ends about the line
  std::size_t calls = 0;

  HostTime to_reference(HostTime t) const;
};

// Fits `host`'s clock to the reference's. Errors: unavailable, with a reason, where the operations
// do not match.
Result<ClockLine> fit_clock(const HostCalls& reference, const HostCalls& host);

// The collectives of all machines, in the time of the first. `lines`: of all but the first.
// Errors: as collectives_of()'s.
Result<model::CollectiveProfile> collectives_of_job(std::span<const HostCalls> hosts,
                                                    std::span<const ClockLine> lines);

}  // namespace jouleprof::analysis
