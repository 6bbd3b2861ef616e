// The energy that Slurm's accounting has for jobs, as `sacct` prints it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/job.h"

namespace jouleprof::cli {

// Starts `sacct`. One figure for each of `jobs`, in their order. Absent with the reason where sacct
// fails or has none.
std::vector<report::SlurmEnergy> slurm_energies(const std::vector<std::string>& jobs);

// From lines of JobID|ConsumedEnergyRaw: that of the job, else the sum of its numbered steps, which
// are apart from each other. Steps `batch` and `extern` have their time once more.
report::SlurmEnergy slurm_energy_of(const std::string& job, std::string_view lines);

}  // namespace jouleprof::cli
