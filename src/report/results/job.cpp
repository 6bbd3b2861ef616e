#include "report/results/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/quantity.h"

namespace jouleprof::report {

std::optional<JobBy> parse_job_by(std::string_view word) {
  if (word == "host") return JobBy::kHost;
  if (word == "rank") return JobBy::kRank;
  if (word == "job") return JobBy::kJob;
  return std::nullopt;
}

std::string slurm_text(const SlurmEnergy& slurm) {
  if (!slurm.energy) return fmt::format("job {}: {}", slurm.job, slurm.reason);
  return fmt::format(
      "job {}: {} by its accounting, of whole nodes and the domains of the site's plugin "
      "(docs/jobs.md)",
      slurm.job, energy_text(*slurm.energy));
}

std::string ranks_text(const std::vector<analysis::RankGroup>& groups) {
  for (const auto& group : groups) {
    if (!group.is_whole()) return fmt::format("{} of {} ranks", group.present, group.world_size);
  }
  return {};
}

bool is_simulated(const analysis::Job& job) {
  const auto is_of_a_simulated_device = [](const analysis::JobDomain& domain) {
    return domain.energy && domain.energy->provenance == model::Provenance::kSimulated;
  };
  return std::ranges::any_of(job.hosts, [&](const analysis::JobHost& host) {
    return std::ranges::any_of(host.domains, is_of_a_simulated_device);
  });
}

std::vector<std::string> lost_texts(const analysis::Job& job) {
  std::vector<std::string> texts;
  for (const auto& host : job.hosts) {
    for (const auto& domain : host.domains) {
      if (!domain.is_partial()) continue;
      const std::string what =
          domain.least ? fmt::format(
                             "took {} while it had readings, which the sums include; what it took "
                             "otherwise is unknown",
                             energy_text(domain.least->energy))
                       : fmt::format("has no energy for a part of the time ({})", domain.reason);
      texts.push_back(fmt::format("{} of {} {}, so that all sums are lower bounds", domain.label,
                                  host.host, what));
    }
  }
  return texts;
}

std::optional<Quoted> quoted(const analysis::Job& job, bool whole_machine) {
  Total total;
  total.energy = job.total;
  total.command = job.command;
  if (job.is_partial) total.lost = Energy{};
  return quoted(total, whole_machine);
}

std::optional<Quoted> quoted(const analysis::JobHost& host) {
  Total total;
  total.energy = host.total;
  if (host.is_partial) total.lost = Energy{};
  return quoted(total, true);
}

std::optional<Costs> costs_of(const analysis::Job& job, const CostFactors& factors,
                              bool whole_machine) {
  const auto quote = quoted(job, whole_machine);
  if (!quote || !factors.any()) return std::nullopt;
  Costs costs = costs_of(factors, *quote);
  std::set<std::string> domains;
  for (const auto& host : job.hosts) {
    for (const auto& domain : host.domains) {
      if (domain.is_counted && domain.energy) domains.insert(domain.label);
    }
  }
  costs.domains.assign(domains.begin(), domains.end());
  return costs;
}

}  // namespace jouleprof::report
