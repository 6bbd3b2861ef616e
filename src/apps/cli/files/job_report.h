// The report of a job: of recordings and merged files.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/terminal/output.h"
#include "report/results/job.h"

namespace jouleprof::cli {

struct JobPage {
  Output file;          // an empty path: none
  bool redact = false;  // without names of hosts and files
};

// `with_slurm`: asks Slurm's accounting for its energies of the jobs.
// Writes a page to `page.file`, or else to stdout. Returns the exit status.
int report_job(const std::vector<std::string>& files, report::JobOptions options, bool json,
               bool with_slurm, const JobPage& page);

}  // namespace jouleprof::cli
