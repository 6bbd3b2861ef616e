// Windows and layers over ranks, and what each of several jobs is charged with. Private to this
// folder.
#pragma once

#include <span>

#include "analysis/job/job_sums.h"

namespace jouleprof::analysis {

// Each adds one host's recordings, in the order of time; finish_rows() when all hosts were added.
void add_windows(std::span<const Placed> placed, Job& job);
void add_layers(std::span<const Placed> placed, Job& job);
void add_shares(std::span<const Placed> placed, const JobHost& host, const JobRules& rules,
                Job& job);
void finish_rows(Job& job);

}  // namespace jouleprof::analysis
