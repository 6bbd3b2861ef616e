// What --redact leaves out of a page or figure.
#pragma once

#include <string>
#include <vector>

#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "model/recording.h"
#include "report/results/comparison.h"
#include "report/results/job.h"

namespace jouleprof::report {

// Without command line, host, user, folders, imported files, the numbers of the scheduler, the
// addresses of meters, and the names, command lines and UUIDs of processes and devices. Where
// sentences name one of these, it becomes "(redacted)". Names of windows,
// kernels and layers stay: they are what the report is about.
model::Profile redacted(model::Profile profile);

// Without the names of the traced programs. The rows of processes among the layers keep their pids.
std::vector<model::ActivityProfile> redacted(std::vector<model::ActivityProfile> profiles,
                                             const model::Recording& recording);

// --- What --redact leaves out of pages of comparisons, sweeps, benchmarks and jobs ---

// Runs get numbers for their names, and the sides no titles. Sentences lose the names and all
// absolute paths. Names of windows, kernels and layers stay: they are what the page is about.
ComparisonReport redacted(ComparisonReport report);

// Likewise of hosts and recordings. Without boot ids, UUIDs, and the numbers of the scheduler.
analysis::Job redacted(analysis::Job job);

// A sentence without absolute paths.
std::string without_paths(std::string sentence);

}  // namespace jouleprof::report
