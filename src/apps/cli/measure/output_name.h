// The name of a recording with what differs among the processes of a job.
#pragma once

#include <string>

#include "base/result.h"
#include "model/process/rank.h"

namespace jouleprof::cli {

// `pattern` with %h (host), %p (process id of the tool), %j (Slurm's number of the job), %r (rank)
// and %% replaced. Errors: invalid_argument for another letter, and where job or rank are not
// known.
Result<std::string> output_name(const std::string& pattern, const std::string& host,
                                const model::Rank& rank);

}  // namespace jouleprof::cli
