#include <fmt/format.h>

#include "report/costs/cost_lines.h"
#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/markup_text.h"
#include "report/quantity.h"
#include "report/results/result_redaction.h"

namespace jouleprof::report {
namespace {

std::string energy_cell(const std::optional<model::Measurement>& m) {
  return m ? energy_text(m->energy) : "unavailable";
}
std::string error_cell(const std::optional<model::Measurement>& m) {
  return m ? error_text(m->error, m->energy) : "";
}
std::string provenance_cell(const std::optional<model::Measurement>& m) {
  return m ? provenance_word(m->provenance) : "";
}

std::string hosts_table(const analysis::Job& job) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& host : job.hosts) {
    rows.push_back({host.host, std::to_string(host.recordings.size()), duration_text(host.covered),
                    energy_cell(host.total), error_cell(host.total), provenance_cell(host.total)});
  }
  return figure_table("Energy by host",
                      {"host", "recordings", "time", "energy", "95 %", "provenance"}, rows);
}

}  // namespace

Result<std::string> job_to_html(const analysis::Job& whole, const JobOptions& job_options,
                                const PageOptions& options) {
  const analysis::Job job = options.redact ? redacted(whole) : whole;
  std::string html = "<h1>Energy of a job</h1>\n";
  std::string line = fmt::format("{} recordings of {} {}", job.recordings, job.hosts.size(),
                                 job.hosts.size() == 1 ? "machine" : "machines");
  if (job.began && job.elapsed) {
    line += fmt::format(", {} from {}", duration_text(*job.elapsed), utc_seconds_text(*job.began));
  }
  html += element("p", "soft", line);
  if (const auto q = quoted(job, job_options.whole_machine)) {
    html += hero(energy_text(q->energy), interval_text(q->energy, q->error, q->upper_error),
                 badge(q->provenance), quoted_interval_text(*q));
    if (q->is_command) {
      html += element(
          "p", "coverage",
          fmt::format("Of the commands. All devices: {} {}.", energy_text(job.total->energy),
                      error_text(job.total->error, job.total->energy)));
    }
  } else {
    html += hero("no energy", "", badge(model::Provenance::kUnavailable),
                 "No domain's energy is known; the table of hosts has the reasons.");
  }
  const auto costs = costs_of(job, job_options.costs, job_options.whole_machine);
  if (costs) {
    for (const auto& cost : cost_lines(*costs, false)) {
      html += element("p", "coverage", cost.label + ": " + cost.words);
    }
  }
  html += hosts_table(job);
  for (const auto& slurm : job_options.slurm) {
    html += element("p", "coverage", "Slurm, " + slurm_text(slurm));
  }
  for (const auto& warning : job.warnings) html += element("p", "coverage", "warning: " + warning);
  PageParts parts{"Energy of a job", html, page_foot(options), page_head(options)};
  const auto document = job_to_json(job, job_options);
  if (!document) return forward_error(document);
  // The page shows no more of it.
  const Json all = Json::parse(*document);
  parts.data["job"] = {{"hosts", all["hosts"]}, {"ranks", all["ranks"]}};
  return assemble_page(parts);
}

}  // namespace jouleprof::report
