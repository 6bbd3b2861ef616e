// Who used a GPU of a recording: whose each claim is, and the energy of processes that were traced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/processes/board_use.h"
#include "base/clock.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The index of each process in the list.
std::map<model::ProcessId, std::size_t> places_of(const std::vector<model::Process>& processes);

// The slices of [begin, end] by board_use(). Processes are numbers in the recording's list.
std::vector<UseSlice> recorded_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end);

// Processes that cannot be named, but used the board; see board_use.h.
OtherUsers unlisted_users(const model::Recording& recording, const model::Domain& domain,
                          HostTime begin, HostTime end);

// Whose a claim is.
enum class Owner {
  kProcess,  // one process of the command's tree
  kCommand,  // of the tree, of one of several processes or shared by them
  kOthers,   // of processes outside of the tree
  kUnknown,  // of the tree or of others
};
Owner owner_of(const Claim& claim, const std::vector<model::Process>& processes);

// The slices of recorded_use() without the claims of traced processes, without these as candidates
// of others, and without claims of processes at rest.
std::vector<UseSlice> untraced_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end);

// What part of a board's work traced processes did: the least, and the most.
struct TracedPart {
  HostTime begin{};
  HostTime end{};
  double least = 1;
  double most = 1;
};
std::vector<TracedPart> traced_parts(const model::Recording& recording, const model::Domain& domain,
                                     HostTime begin, HostTime end);

// The energy of traced processes on a GPU: that of their kernels. By the recording's processes, in
// its order. All of these sum to the split energy exactly.
struct TracedSplit {
  std::vector<std::optional<model::ProcessShare>> shares;  // absent: not on this GPU
  Energy within_command;  // of the command's processes, of which of them is unknown
  Energy others;
  Energy held_unowned;  // of contexts of no process that is known
  Energy unattributed;
  Energy contested;  // of the unattributed, as DomainSplit has it
  Duration contested_time{};
  std::optional<model::DivisionBounds> command_bounds{};
  // By process, as DomainSplit has them: one without a share may have worked, too.
  std::vector<model::DivisionBounds> bounds{};
};

// Index of a trace's process; absent: no reading caught it. A pid can be given out twice: the
// process that lived when the trace began.
std::optional<std::size_t> process_of(const model::Recording& recording, const model::Trace& trace);

// Adds each traced process that no reading of processes caught, as a process of the command's tree.
void add_traced_processes(model::Recording& recording);

// Splits `energy`, of [begin, end] above what the board draws at rest and held:
//  - kernels and idle time between launches: as attributed to each process;
//  - ActivityProfile::others: among processes without a trace, as board_use() has it;
//  - the rest is unattributed.
TracedSplit split_traced(const model::Recording& recording, const model::ActivityProfile& activity,
                         Energy energy);

// --- The end of a traced process that did not close its trace ---

// What the process ran in this time may be in no record.
struct LostEnd {
  std::uint32_t trace = 0;  // index into Recording::traces
  HostTime begin{};         // its last record
  HostTime end{};           // its end
};

// The ends of processes that used a GPU or PyTorch layers, and were killed by a signal or left by
// _exit. Tracers send their records once a second and keep launches for half a second more: at most
// the last 3 s can be missing. Only within [from, to].
std::vector<LostEnd> lost_ends(const model::Recording& recording, std::optional<HostTime> from,
                               std::optional<HostTime> to);

// "python (pid 7) ended without closing its trace (...): what it ran in its last 0.84 s is ..."
std::string lost_text(const model::Recording& recording, const LostEnd& lost);

}  // namespace jouleprof::analysis
