// The report of a job: of recordings and merged files.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/output.h"
#include "report/job.h"

namespace jouleprof::cli {

// Writes a page to `html`, or else to stdout. Returns the exit status.
int report_job(const std::vector<std::string>& files, const report::JobOptions& options, bool json,
               const Output& html);

}  // namespace jouleprof::cli
