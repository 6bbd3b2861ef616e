// Comparisons, sweeps, benchmarks and jobs as pages for a browser.
#pragma once

#include <string>
#include <vector>

#include "analysis/job/job.h"
#include "base/result.h"
#include "report/results/bench.h"
#include "report/results/comparison.h"
#include "report/results/job.h"
#include "report/results/recommendation.h"

namespace jouleprof::report {

struct PageOptions {
  std::string version;  // of the tool
  std::string again;    // the command that prints the same figures; empty: not named
  bool redact = false;  // without names of files, hosts, jobs and commands (result_redaction.h)
};

// Each page holds what it shows of the document of --json as data; its headline needs no script.
// Errors: internal.
Result<std::string> comparison_to_html(const ComparisonReport& whole, const PageOptions& options);
// `runs`: of our own sweep, for the state of the GPU; may be empty.
Result<std::string> recommendation_to_html(const std::vector<AdvisedSweep>& sweeps,
                                           const RecommendationOptions& recommendation,
                                           const std::vector<model::SweepRun>& runs,
                                           const PageOptions& options);
Result<std::string> bench_to_html(const model::BenchDocument& document,
                                  const std::vector<BenchResult>& results,
                                  const PageOptions& options);
Result<std::string> job_to_html(const analysis::Job& whole, const JobOptions& job_options,
                                const PageOptions& options);

// What --redact leaves out of pages of comparisons, sweeps, benchmarks and jobs.

// Runs get numbers for their names, and the sides no titles. Sentences lose the names and all
// absolute paths. Names of windows, kernels and layers stay: they are what the page is about.
ComparisonReport redacted(ComparisonReport report);

// Likewise of hosts and recordings. Without boot ids, UUIDs, and the numbers of the scheduler.
analysis::Job redacted(analysis::Job job);

// A sentence without absolute paths.
std::string without_paths(std::string sentence);

}  // namespace jouleprof::report
