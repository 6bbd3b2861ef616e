// What --redact leaves out of pages of comparisons, sweeps, benchmarks and jobs.
#pragma once

#include <string>

#include "analysis/job/job.h"
#include "report/results/comparison.h"

namespace jouleprof::report {

// Runs get numbers for their names, and the sides no titles. Sentences lose the names and all
// absolute paths. Names of windows, kernels and layers stay: they are what the page is about.
ComparisonReport redacted(ComparisonReport report);

// Likewise of hosts and recordings. Without boot ids, UUIDs, and the numbers of the scheduler.
analysis::Job redacted(analysis::Job job);

// A sentence without absolute paths.
std::string without_paths(std::string sentence);

}  // namespace jouleprof::report
