// The report of a job: of a merged file, or of one recording.
#pragma once

#include <string>

#include "apps/cli/output.h"
#include "report/job.h"

namespace jouleprof::cli {

// Writes a page to `html`, or else to stdout. Returns the exit status.
int report_job(const std::string& file, const report::JobOptions& options, bool json,
               const Output& html);

}  // namespace jouleprof::cli
