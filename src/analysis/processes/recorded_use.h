// Who used a GPU of a recording, and what is known of each claim's owner.
#pragma once

#include <vector>

#include "analysis/processes/board_use.h"
#include "base/clock.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The slices of [begin, end] by board_use(). Processes are numbers in the recording's list.
std::vector<UseSlice> recorded_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end);

// The same of processes that cannot be named; see board_use.h.
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

// Whether the process has a trace of its work on a GPU.
std::vector<bool> traced_processes(const model::Recording& recording);

// The same slices without the claims of traced processes, without these as candidates of others,
// and without claims of processes at rest.
std::vector<UseSlice> untraced_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
