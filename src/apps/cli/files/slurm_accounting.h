// The energy that Slurm's accounting has for jobs, as `sacct` prints it.
#pragma once

#include <string>
#include <vector>

#include "report/results/job.h"

namespace jouleprof::cli {

// Starts `sacct`. One figure for each of `jobs`, in their order. Absent with the reason where sacct
// fails or has none.
std::vector<report::SlurmEnergy> slurm_energies(const std::vector<std::string>& jobs);

}  // namespace jouleprof::cli
