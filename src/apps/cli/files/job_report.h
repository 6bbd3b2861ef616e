// The report of a job: of a merged file, or of one recording.
#pragma once

#include <string>

#include "report/job.h"

namespace jouleprof::cli {

// Writes to stdout. Returns the exit status.
int report_job(const std::string& file, const report::JobOptions& options, bool json);

}  // namespace jouleprof::cli
