// The report of a job: of recordings and merged files.
#pragma once

#include <string>
#include <vector>

#include "report/job.h"

namespace jouleprof::cli {

// Writes to stdout. Returns the exit status.
int report_job(const std::vector<std::string>& files, const report::JobOptions& options, bool json);

}  // namespace jouleprof::cli
