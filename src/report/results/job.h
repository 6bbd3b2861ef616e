// A job of several recordings, as people and programs read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/job/job.h"
#include "model/wall_log.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/total.h"

namespace jouleprof::report {

enum class JobBy { kHost, kRank, kJob };
std::optional<JobBy> parse_job_by(std::string_view word);  // host, rank, job

// What Slurm's accounting has for a job; absent with the reason.
struct SlurmEnergy {
  std::string job;
  std::optional<Energy> energy;
  std::string reason;
};

// In one sentence.
std::string slurm_text(const SlurmEnergy& slurm);

struct JobOptions {
  JobBy by = JobBy::kHost;
  CostFactors costs;  // without a series
  analysis::JobRules rules{};
  std::vector<std::pair<std::string, model::WallLog>> walls{};  // by machine
  std::vector<SlurmEnergy> slurm{};                             // where asked for
  bool whole_machine = false;                                   // costs of all devices
};

// Errors: of wall meters' logs, as compare_wall's.
Result<std::string> job_to_text(const analysis::Job& job, const JobOptions& options,
                                const TextOptions& text = {});

// The documented JSON object (docs/json.md).
Result<std::string> job_to_json(const analysis::Job& job, const JobOptions& options);

// The documented JSON object of `merge --json` (docs/json.md).
std::string merge_to_json(const std::string& output, std::size_t recordings,
                          const analysis::RankCensus::Found& found);

// "60 of 64 ranks", of the largest group with a missing rank; empty: none is missing.
std::string ranks_text(const std::vector<analysis::RankGroup>& groups);

// Whether any of its figures is of a simulated device.
bool is_simulated(const analysis::Job& job);

// Which devices were lost, and what they took before.
std::vector<std::string> lost_texts(const analysis::Job& job);

// What its commands are charged with; the job's total where `whole_machine`, or where no recording
// is of a command. Absent without an energy.
std::optional<Quoted> quoted(const analysis::Job& job, bool whole_machine);
// All that was measured on one machine.
std::optional<Quoted> quoted(const analysis::JobHost& host);

// The costs of the quoted energy; absent without it, or without factors.
std::optional<Costs> costs_of(const analysis::Job& job, const CostFactors& factors,
                              bool whole_machine);

}  // namespace jouleprof::report
