// The energy of traced processes on a GPU: that of their kernels.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// By the recording's processes, in its order. All of these sum to the split energy exactly.
struct TracedSplit {
  std::vector<std::optional<model::ProcessShare>> shares;  // absent: not on this GPU
  Energy others;
  Energy held_unowned;  // as DomainProfile's
  Energy unattributed;
};

// Index of a trace's process; absent: no reading caught it. A pid can be given out twice: the
// process that lived when the trace began.
std::optional<std::size_t> process_of(const model::Recording& recording, const model::Trace& trace);

// When a traced process had a context within [begin, end]: from its first launch to its end.
// `process` may be null. Empty: the end is before the begin.
struct ContextSpan {
  HostTime begin{};
  HostTime end{};
};
ContextSpan context_span(const model::Trace& trace, const model::Process* process, HostTime begin,
                         HostTime end);

// Adds each traced process that no reading of processes caught, as a process of the command's tree.
void add_traced_processes(model::Recording& recording);

// Utilisation of a GPU by processes that were not traced: their readings in [begin, end] added up,
// by the recording's processes, in its order. `also` gets each reading, too: its time, its process
// and its utilisation.
std::vector<double> untraced_use(
    const model::Recording& recording, const model::Domain& domain, HostTime begin, HostTime end,
    const std::function<void(HostTime, std::size_t, double)>& also = {});

// Splits `energy`, of [begin, end] without what the board draws at rest:
//  - kernels and idle time between launches: as attributed to each process;
//  - held: in proportion to the time for which each process had a context, from its first launch to
//    its end; where processes of other jobs held the board, too, and what no process had a context
//    for, is unowned;
//  - ActivityProfile::others: in proportion to utilisation, among processes without a trace;
//  - the rest is unattributed.
TracedSplit split_traced(const model::Recording& recording, const model::ActivityProfile& activity,
                         const BoardLevels& levels, Energy energy, std::optional<Energy> held,
                         HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
