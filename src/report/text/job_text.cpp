#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/text.h"
#include "report/cells.h"
#include "report/costs/wall.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/results/job.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

using analysis::Job;

constexpr std::size_t kShownRows = 12;
constexpr std::int64_t kRounding = 10;  // microjoules, of the sum of some shares

class Writer {
 public:
  Writer(const Job& job, const JobOptions& options, const TextOptions& text)
      : job_(job), options_(options), page_(text) {}

  std::string write() {
    if (is_simulated(job_)) page_.note_simulated();
    total();
    heading();
    page_.blank();
    if (options_.by == JobBy::kHost) {
      hosts();
    } else if (options_.by == JobBy::kRank) {
      ranks();
    } else {
      jobs();
    }
    if (!job_.warnings.empty()) page_.blank();
    for (const auto& warning : job_.warnings) page_.note("warning", warning, Style::kAttention);
    std::string all = page_.joined();
    const auto costs = costs_of(job_, options_.costs, options_.whole_machine);
    if (costs) all += costs_to_text(*costs, page_.text);
    return all;
  }

 private:
  static std::string energy_of(const model::Measurement& m, bool is_partial) {
    return (is_partial ? "at least " : "") + energy_text(m.energy);
  }
  std::string error_of(const model::Measurement& m, bool is_partial = false) const {
    if (is_partial) return lower_interval_text(m.energy.joules(), m.below().joules());
    return m.energy > Energy{} ? interval_text(m.energy, m.below(), m.above(), page_.text.ascii)
                               : "-";
  }

  void heading() {
    page_.note("job", fmt::format("{} of {}", counted(job_.recordings, "recording"),
                                  counted(job_.hosts.size(), "machine")));
    if (job_.began && job_.elapsed) {
      page_.note("time", fmt::format("{}, from {}", duration_text(*job_.elapsed),
                                     utc_seconds_text(*job_.began)));
    }
    if (job_.hosts.size() > 1) clocks();
  }

  void clocks() {
    if (!job_.is_aligned) {
      Duration change{};
      for (const auto& host : job_.hosts) change = std::max(change, host.clock_change);
      page_.note(
          "clocks",
          fmt::format("times of machines are compared by their wall clocks, which moved by at most "
                      "{} during the recordings; their offset is not recorded. Energies do not "
                      "depend on it",
                      duration_text(change)));
      return;
    }
    const analysis::HostClock* worst = nullptr;
    double offset = 0;
    for (const auto& host : job_.hosts) {
      if (!host.clock) continue;
      offset = std::max(offset, std::abs(host.clock->offset_seconds));
      if (worst == nullptr || host.clock->error_seconds > worst->error_seconds) {
        worst = &*host.clock;
      }
    }
    if (worst == nullptr) return;
    page_.note("clocks",
               fmt::format("of machines are aligned by {} collectives, to {} or better; wall "
                           "clocks differ by up to {}",
                           worst->calls, duration_text(duration_of(worst->error_seconds)),
                           duration_text(duration_of(offset))));
  }

  void hosts() {
    Table table({"host", "recordings", "time", "energy", "95 %", "<"});
    for (const auto& host : job_.hosts) {
      table.add({{page_.safe(host.host), Style::kBold},
                 {std::to_string(host.recordings.size())},
                 {duration_text(host.covered)},
                 {host.total ? energy_of(*host.total, host.is_partial) : "-"},
                 {host.total ? error_of(*host.total, host.is_partial) : "-"},
                 {host.total ? provenance_word(host.total->provenance) : ""}});
      for (const auto& domain : host.domains) {
        const std::string label = page_.safe(" " + domain.label);
        if (!domain.energy) {
          table.add_text({label}, {"unavailable: " + page_.safe(domain.reason)}, 2);
          continue;
        }
        std::string word = provenance_word(domain.energy->provenance);
        if (!domain.is_counted) word += ", within another";
        table.add({{label},
                   {""},
                   {""},
                   {energy_of(*domain.energy, domain.lacks_time)},
                   {error_of(*domain.energy, domain.lacks_time)},
                   {word}});
        if (domain.lacks_time) table.add_text({""}, {"without " + page_.safe(domain.reason)}, 2);
      }
    }
    page_.add(table);
  }

  void ranks() {
    Table table({"rank", "<host", "<recording", "time", "CPU time", "dynamic"});
    Energy sum;
    std::set<std::string> without;
    bool any = false;
    bool all = true;
    for (const auto& rank : job_.ranks) {
      const std::string least = rank.without.empty() ? "" : "at least ";
      table.add({{rank.rank.global ? std::to_string(*rank.rank.global) : "-"},
                 {page_.safe(rank.host)},
                 {page_.safe(rank.recording)},
                 {duration_text(rank.length)},
                 {!rank.cpu_time                 ? "-"
                  : *rank.cpu_time == Duration{} ? "<40 ms"
                                                 : duration_text(*rank.cpu_time)},
                 {rank.energy ? least + energy_text(*rank.energy) : "-"}});
      without.insert(rank.without.begin(), rank.without.end());
      all = all && rank.energy && rank.without.empty();
      if (!rank.energy) continue;
      sum += *rank.energy;
      any = true;
    }
    page_.add(table);
    kernels_by_rank();
    if (any && job_.total) {
      page_.note("rest",
                 fmt::format("{} of the total are {}: at rest, of other processes, or "
                             "unattributed",
                             energy_text(job_.total->energy - sum),
                             all ? "of no rank" : "of ranks whose part is unknown, or of no rank"));
    }
    page_.note("",
               "dynamic: the estimated shares of the rank's processes in the energy above rest");
    for (const auto& rank : job_.ranks) {
      constexpr double kNoted = 0.1;
      const auto& [low, high] = rank.bounds;
      if (!rank.energy || (high - low).joules() <= kNoted * rank.energy->joules()) continue;
      page_.note("", fmt::format("rank {}: the division by use is uncertain: {} to {}",
                                 rank.rank.global ? std::to_string(*rank.rank.global) : "-",
                                 energy_text(low), energy_text(high)));
    }
    if (without.empty()) return;
    page_.note("",
               page_.safe(fmt::format("without {}: ranks used them, and their energy above rest "
                                      "is unknown",
                                      fmt::join(without, ", "))));
  }

  // Of ranks whose kernels were traced.
  void kernels_by_rank() {
    const auto is_traced = [](const analysis::JobRank& r) { return r.kernels.has_value(); };
    if (std::ranges::none_of(job_.ranks, is_traced)) return;
    Table table({"rank", "kernels", "between", "held", "waiting", "energy", "imbalance"});
    const auto energy = [](const auto& e) { return e ? energy_text(*e) : "-"; };
    for (const auto& rank : job_.ranks) {
      if (!is_traced(rank)) continue;
      table.add({{rank.rank.global ? std::to_string(*rank.rank.global) : "-"},
                 {energy(rank.kernels)},
                 {energy(rank.idle_between)},
                 {energy(rank.held)},
                 {rank.waiting ? duration_text(*rank.waiting) : "-"},
                 {rank.waiting_energy ? energy_text(rank.waiting_energy->energy) : "-"},
                 {rank.imbalance ? fmt::format("{:+.1f} %", 100 * *rank.imbalance) : "-"}});
    }
    page_.blank();
    page_.add(table);
    page_.note(
        "",
        "of dynamic: kernels, the time between launches, held. Waiting: in collectives for "
        "slower ranks, in kernels. Imbalance: time in other kernels against the ranks' mean");
  }

  void jobs() {
    Table table({"job", "hosts", "ranks", "recorded", "dynamic", "rest", "charged"});
    const auto charged = [](Energy e) { return e == Energy{} ? "-" : energy_text(e); };
    const auto is_lower_bound = [&](const analysis::JobShare& share) {
      return job_.is_partial && share.charged() > Energy{};
    };
    const auto all = quoted(job_, false);
    const bool is_bound = job_.shares.size() == 1 && job_.command && all && all->is_bound();
    for (const auto& share : job_.shares) {
      table.add(
          {{share.job.empty() ? "-" : page_.safe(share.job), Style::kBold},
           {std::to_string(share.hosts)},
           {share.ranks > 0 ? std::to_string(share.ranks) : "-"},
           {duration_text(share.recorded)},
           {share.has_unknown_rest ? "-" : charged(share.dynamic)},
           {share.knows_rest ? charged(share.rest) : "-"},
           {is_bound ? quoted_energy_text(*all)
                     : (is_lower_bound(share) ? "at least " : "") + charged(share.charged())}});
    }
    page_.add(table);
    std::string rule =
        "charged: the dynamic energy of the job's processes, and the energy at rest of the devices "
        "that no other family used";
    if (const auto& share = options_.rules.machine_share) {
      rule += fmt::format("; of CPUs and DRAM {} of it", percent_text(*share));
    }
    page_.note("", rule);
    if (job_.not_charged != Energy{}) {
      page_.note("not charged",
                 fmt::format("{} at rest, of devices that others used or MIG divides, or beyond "
                             "the share",
                             energy_text(job_.not_charged)));
    }
    if (job_.undivided.microjoules() < -kRounding || job_.undivided.microjoules() > kRounding) {
      page_.note("undivided", fmt::format("{} of which it is not known whose it is",
                                          energy_text(job_.undivided)));
    }
    for (const auto& slurm : options_.slurm) page_.note("slurm", slurm_text(slurm));
    if (job_.others != Energy{}) {
      page_.note("others",
                 fmt::format("{} of processes outside of the recorded commands: not charged",
                             energy_text(job_.others)));
    }
    rows("window", "ranks", "of a rank", job_.windows);
    for (const auto& window : job_.windows) {
      if (!window.is_partial) continue;
      page_.note("PARTIAL",
                 fmt::format("windows '{}' lack a device: {}; their sums are lower bounds",
                             window.name, window.reason),
                 Style::kAttention);
      break;
    }
    rows("layer", "recordings", "of a recording", job_.layers);
  }

  // Windows or layers over ranks or recordings.
  template <class Row>
  void rows(const std::string& title, const std::string& places, const std::string& each,
            const std::vector<Row>& all) {
    if (all.empty()) return;
    page_.blank();
    Table table({"<" + title, places, "energy", "95 %", each, "spread", "most", "<in"});
    for (std::size_t i = 0; i < std::min(all.size(), kShownRows); ++i) {
      const auto& row = all[i];
      const auto& joules = row.joules;
      const bool is_known = joules.of > 0;
      bool is_partial = false;
      if constexpr (requires { row.is_partial; }) is_partial = row.is_partial;
      table.add({{page_.safe(row.name)},
                 {std::to_string(std::max(joules.of, row.seconds.of))},
                 {row.energy ? energy_of(*row.energy, is_partial) : "-"},
                 {row.energy ? error_of(*row.energy, is_partial) : "-"},
                 {is_known ? energy_text(Energy::joules(joules.mean)) : "-"},
                 {is_known && joules.mean > 0 ? percent_text(joules.deviation / joules.mean) : "-"},
                 {is_known ? energy_text(Energy::joules(joules.most)) : "-"},
                 {page_.safe(joules.most_in)}});
    }
    page_.add(table);
    if (all.size() > kShownRows) {
      page_.note("", fmt::format("{} more; all are in --json", all.size() - kShownRows));
    }
  }

  void total() {
    if (const auto& own = job_.command; own && !options_.whole_machine) {
      const Quoted q = *quoted(job_, false);
      page_.note(
          "commands",
          q.is_bound()
              ? fmt::format("{} {}, {}", quoted_energy_text(q),
                            quoted_error_text(q, page_.text.ascii), provenance_word(q.provenance))
              : fmt::format("{} {}, {}: processes {}{}", quoted_energy_text(q),
                            quoted_error_text(q, page_.text.ascii), provenance_word(q.provenance),
                            energy_text(own->processes),
                            own->rest ? " + rest " + energy_text(*own->rest)
                                      : ", with energy at rest, which is unknown"),
          Style::kBold);
    }
    if (!job_.total) {
      page_.note("total", "unavailable: no machine has a domain with an energy");
    } else {
      std::string words = energy_of(*job_.total, job_.is_partial) + " " +
                          error_of(*job_.total, job_.is_partial) + ", " +
                          provenance_word(job_.total->provenance) +
                          "; a domain that several recordings have "
                          "counts once";
      if (const auto ranks = ranks_text(job_.rank_groups); !ranks.empty()) words += "; of " + ranks;
      if (job_.without_energy > 0) {
        words += job_.without_energy == 1
                     ? "; without one domain that has no energy"
                     : fmt::format("; without {} domains that have no energy", job_.without_energy);
      }
      page_.note("total", words, Style::kBold);
    }
    for (const auto& lost : lost_texts(job_)) page_.note("PARTIAL", lost, Style::kAttention);
  }

  const Job& job_;
  const JobOptions& options_;
  TextPage page_;
};

}  // namespace

Result<std::string> job_to_text(const Job& job, const JobOptions& options,
                                const TextOptions& text) {
  std::string all = Writer(job, options, text).write();
  for (const auto& [host, log] : options.walls) {
    const auto wall = compare_wall(job, host, log);
    if (!wall) return forward_error(wall);
    all += wall_to_text(*wall, text);
  }
  return all;
}

}  // namespace jouleprof::report
