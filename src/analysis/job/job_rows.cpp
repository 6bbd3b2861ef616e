#include "analysis/job/job_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/energy_split.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;
using model::Window;

// Adds a value to mean and deviation (Welford 1962, a numerically stable update); finish_rows()
// divides.
void include(Spread& spread, double value, const std::string& where) {
  if (spread.of == 0 || value > spread.most) {
    spread.most = value;
    spread.most_in = where;
  }
  spread.least = spread.of == 0 ? value : std::min(spread.least, value);
  ++spread.of;
  const double before = value - spread.mean;
  spread.mean += before / static_cast<double>(spread.of);
  spread.deviation += before * (value - spread.mean);
}

void finish(Spread& spread) {
  spread.deviation =
      spread.of > 1 ? std::sqrt(spread.deviation / static_cast<double>(spread.of - 1)) : 0;
}

template <class Row>
Row& row_named(std::vector<Row>& rows, const std::string& name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  if (found != rows.end()) return *found;
  rows.emplace_back().name = name;
  return rows.back();
}

// A window with the recording that it is in.
struct PlacedWindow {
  const Window* window;
  const Placed* placed;
  std::string rank;
};

// The windows of one name on one host.
class HostWindows {
 public:
  HostWindows(std::span<const Placed> placed, std::vector<PlacedWindow> windows)
      : placed_(placed), windows_(std::move(windows)) {
    std::stable_sort(windows_.begin(), windows_.end(), [](const auto& a, const auto& b) {
      return a.window->begin < b.window->begin;
    });
  }

  void add_to(JobWindow& out) {
    struct OfRank {
      double joules = 0;
      bool has_energy = false;
      double seconds = 0;
    };
    std::map<std::string, OfRank> ranks;
    std::set<DomainKey> keys;
    for (const auto& [window, placed, rank] : windows_) {
      ranks[rank].seconds += seconds(window->end - window->begin);
      for (std::size_t d = 0; d < placed->profile->domains.size(); ++d) {
        const auto& domain = placed->profile->domains[d].domain;
        if (!measures(*placed, *window, d)) continue;
        const auto energy = placed->named->run.energy(d, *window);
        if (!energy) continue;
        keys.insert(key_of(domain));
        ranks[rank].joules += energy->energy.joules();
        ranks[rank].has_energy = true;
      }
    }
    for (const auto& key : keys) {
      if (const auto sum = energy_of(key)) analysis::add(out.energy, *sum);
    }
    out.count += windows_.size();
    for (const auto& [rank, found] : ranks) {
      include(out.seconds, found.seconds, rank);
      if (found.has_energy) include(out.joules, found.joules, rank);
    }
  }

 private:
  static bool measures(const Placed& placed, const Window& window, std::size_t d) {
    const auto& domain = placed.profile->domains[d];
    return domain.domain.visible && domain.energy && is_counted(*placed.profile, domain.domain) &&
           window.devices.contains(domain.domain.id);
  }

  // Where windows of several processes overlap, the device's time counts once.
  std::optional<model::Measurement> energy_of(const DomainKey& key) {
    struct Span {
      HostTime begin{};
      HostTime end{};
      const Placed* placed;
    };
    std::vector<const PlacedWindow*> here;
    bool is_shared = false;
    for (const auto& w : windows_) {
      if (!domain_of(*w.placed, key, w.window)) continue;
      here.push_back(&w);
      is_shared = is_shared || w.window->pid != here.front()->window->pid ||
                  w.placed != here.front()->placed;
    }
    std::vector<Span> spans;
    for (const auto* w : here) {
      if (is_shared && !spans.empty() && w->window->begin < spans.back().end) {
        spans.back().end = std::max(spans.back().end, w->window->end);
      } else {
        spans.push_back({w->window->begin, w->window->end, w->placed});
      }
    }
    model::WindowSum sum;
    for (const auto& span : spans) {
      const Placed& from = covering(span.begin, span.end, *span.placed, key);
      const auto d = domain_of(from, key, nullptr);
      if (!d) continue;
      if (const auto energy = from.named->run.energy(*d, span.begin, span.end)) sum.add(*energy);
    }
    return sum.sum();
  }

  // The first recording that covers the time, as for the host's energy.
  const Placed& covering(HostTime begin, HostTime end, const Placed& own, const DomainKey& key) {
    for (const auto& placed : placed_) {
      if (placed.profile->begin <= begin && placed.profile->end >= end &&
          domain_of(placed, key, nullptr)) {
        return placed;
      }
    }
    return own;
  }

  // Index of the domain in a recording that measures it; `window`: and that it is charged with.
  static std::optional<std::size_t> domain_of(const Placed& placed, const DomainKey& key,
                                              const Window* window) {
    for (std::size_t d = 0; d < placed.profile->domains.size(); ++d) {
      const auto& domain = placed.profile->domains[d];
      if (!domain.domain.visible || !domain.energy || key_of(domain.domain) != key) continue;
      if (window == nullptr || window->devices.contains(domain.domain.id)) return d;
    }
    return std::nullopt;
  }

  std::span<const Placed> placed_;
  std::vector<PlacedWindow> windows_;
};

// Charges the domains of one host to its jobs.
class HostShares {
 public:
  HostShares(std::span<const Placed> placed, const JobRules& rules, Job& job)
      : placed_(placed), rules_(rules), job_(job) {
    for (const auto& p : placed) {
      OfJob& of_job = jobs_[p.profile->run.rank.job];
      ++of_job.recordings;
      const HostTime from =
          of_job.until ? std::max(*of_job.until, p.profile->begin) : p.profile->begin;
      if (p.profile->end > from) of_job.recorded += p.profile->end - from;
      of_job.until = std::max(of_job.until.value_or(p.profile->end), p.profile->end);
    }
  }

  void add(const JobDomain& domain) {
    if (!domain.is_counted || !domain.energy) return;
    const std::vector<Seen> seen = recordings_of({domain.label, domain.identity});
    model::CommandEnergy own;
    own.rest = Energy{};
    bool any = false;
    bool is_parallel = false;
    Energy others;
    Processes counted;
    for (const auto& one : seen) {
      const Energy dynamic = one.is_whole
                                 ? one.domain->command->processes
                                 : dynamic_of(*one.profile, one.domain->domain.id, counted);
      // Of which process it is need not be known; of concurrent recordings it is counted once.
      const bool counts = !one.is_whole && !one.follows;
      const Energy within = counts ? one.domain->within_command.value_or(Energy{}) : Energy{};
      jobs_[one.job].dynamic += dynamic + within;
      own.processes += dynamic + within;
      any = any || one.domain->command;
      is_parallel = is_parallel || one.overlaps;
      // Of recordings of one time it is not known whether others are another recording's commands.
      if (!one.overlaps) others += one.domain->others.value_or(Energy{});
    }
    Energy left = domain.energy->energy - own.processes - others;
    std::vector<const Seen*> charged;
    for (const auto& one : seen) {
      const Energy share = charged_rest(seen, one, is_parallel);
      if (share > Energy{} || has_rest(one)) charged.push_back(&one);
      if (!is_parallel) jobs_[one.job].rest += share;
      job_.not_charged += one.rest - share;
      *own.rest += share;
      left -= one.rest;
    }
    if (is_parallel) divide(*own.rest, charged);
    job_.others += others;
    job_.undivided += left;
    if (!any) return;
    own.undivided = std::max(left, Energy{});
    const Energy excess = std::max(-left, Energy{});
    set_interval(own, *domain.energy, others, excess, excess);
    // What the recordings leave open, such as CPU time below a tick, the job does, too.
    Energy open;
    for (const auto& one : seen) {
      if (one.domain->command && !is_parallel) open += one.domain->command->energy.error;
    }
    own.energy.error = std::max(own.energy.error, open);
    model::add(job_.command, own);
  }

  void finish() {
    for (const auto& [name, of_job] : jobs_) {
      const auto found =
          std::find_if(job_.shares.begin(), job_.shares.end(),
                       [&, &wanted = name](const JobShare& s) { return s.job == wanted; });
      JobShare& share = found != job_.shares.end() ? *found : job_.shares.emplace_back();
      share.job = name;
      ++share.hosts;
      share.recordings += of_job.recordings;
      share.recorded += of_job.recorded;
      share.dynamic += of_job.dynamic;
      share.rest += of_job.rest;
    }
  }

 private:
  struct OfJob {
    std::size_t recordings = 0;
    Duration recorded{};
    std::optional<HostTime> until;
    Energy dynamic;
    Energy rest;
  };

  // By pid and begin: the end of the last recording that has it.
  using Processes = std::map<std::pair<pid_t, HostTime>, HostTime>;

  // Without processes that another recording has at the same time.
  static Energy dynamic_of(const model::Profile& profile, model::DomainId domain, Processes& seen) {
    Energy sum;
    for (const auto& process : profile.processes) {
      const auto [known, is_new] =
          seen.try_emplace({process.process.pid, process.process.start}, profile.end);
      if (!is_new && profile.begin < known->second) continue;
      known->second = profile.end;
      for (const auto& share : process.shares) {
        if (share.domain == domain) sum += share.energy;
      }
    }
    return sum;
  }

  // A recording of a domain.
  struct Seen {
    const model::Profile* profile;
    const model::DomainProfile* domain;
    std::string job;
    Energy rest;            // in its part of the time
    bool is_whole = false;  // nothing is known of processes
    bool overlaps = false;  // another recording
    bool follows = false;   // one that overlaps, and began before it
  };

  // Whether no other family used the device while the command ran.
  static bool has_rest(const Seen& one) { return one.domain->command && one.domain->command->rest; }

  struct Span {
    HostTime begin;
    HostTime end;
  };

  // What is left of `spans` without the time of `profile`, which is taken from them; seconds.
  static double take(std::vector<Span>& spans, const model::Profile& profile) {
    double taken = 0;
    std::vector<Span> rest;
    for (const Span& span : spans) {
      const HostTime begin = std::max(span.begin, profile.begin);
      const HostTime end = std::min(span.end, profile.end);
      if (end <= begin) {
        rest.push_back(span);
        continue;
      }
      taken += seconds(end - begin);
      if (span.begin < begin) rest.push_back({span.begin, begin});
      if (end < span.end) rest.push_back({end, span.end});
    }
    spans = std::move(rest);
    return taken;
  }

  // The rest of each time belongs to the first that covers it: to the first of those whose command
  // has it, where there is one.
  std::vector<Seen> recordings_of(const DomainKey& key) const {
    std::vector<Seen> seen;
    std::vector<Span> open{{HostTime::min(), HostTime::max()}};
    for (const auto& p : placed_) {
      for (const auto& d : p.profile->domains) {
        if (!d.domain.visible || !d.energy || key_of(d.domain) != key) continue;
        Seen one{p.profile, &d, p.profile->run.rank.job, {}, d.command && !d.command->is_divided};
        for (Seen& other : seen) {
          if (other.profile->begin >= p.profile->end || p.profile->begin >= other.profile->end) {
            continue;
          }
          other.overlaps = one.overlaps = one.follows = true;
        }
        seen.push_back(std::move(one));
      }
    }
    for (const bool with_rest : {true, false}) {
      for (Seen& one : seen) {
        if (has_rest(one) != with_rest) continue;
        const double all = seconds(one.profile->duration());
        const double part = all > 0 ? take(open, *one.profile) / all : 1.0;
        const Energy rest = one.domain->idle_part.value_or(Energy{});
        one.rest = part == 1.0 ? rest : Energy::joules(rest.joules() * part);
      }
    }
    return seen;
  }

  // Of the energy at rest in a recording's part of the time, what its job is charged with.
  Energy charged_rest(const std::vector<Seen>& all, const Seen& one, bool is_parallel) const {
    const bool is_alone =
        std::all_of(all.begin(), all.end(), [&](const Seen& s) { return s.job == one.job; });
    const bool is_machine = one.domain->domain.kind != DomainKind::kGpu;
    if (is_machine && rules_.machine_share && is_alone) {
      return Energy::joules(one.rest.joules() * *rules_.machine_share);
    }
    if (has_rest(one)) return one.rest;
    // Others may be the job's own, of a concurrent recording.
    return is_alone && is_parallel && one.domain->command ? one.rest : Energy{};
  }

  // Among the jobs of these recordings, by recorded time; the last one has what rounding leaves.
  void divide(Energy energy, const std::vector<const Seen*>& recordings) {
    std::vector<OfJob*> jobs;
    double time = 0;
    for (const Seen* one : recordings) {
      OfJob* job = &jobs_[one->job];
      if (std::find(jobs.begin(), jobs.end(), job) != jobs.end()) continue;
      jobs.push_back(job);
      time += seconds(job->recorded);
    }
    Energy left = energy;
    for (std::size_t i = 0; i + 1 < jobs.size() && time > 0; ++i) {
      const Energy part = Energy::joules(energy.joules() * seconds(jobs[i]->recorded) / time);
      jobs[i]->rest += part;
      left -= part;
    }
    if (!jobs.empty()) jobs.back()->rest += left;
  }

  std::span<const Placed> placed_;
  const JobRules& rules_;
  Job& job_;
  std::map<std::string, OfJob> jobs_;
};

}  // namespace

void add_windows(std::span<const Placed> placed, Job& job) {
  std::vector<std::string> names;  // in order of appearance
  std::map<std::string, std::vector<PlacedWindow>> by_name;
  for (const auto& p : placed) {
    if (p.named->run.recording().windows.empty()) continue;
    const auto ranks = ranks_of_processes(p);
    const auto& own = p.profile->run.rank.global;
    const std::string other = own ? std::to_string(*own) : p.named->name;
    for (const auto& window : p.named->run.recording().windows) {
      const auto found = ranks.find(window.pid);
      auto& windows = by_name[window.name];
      if (windows.empty()) names.push_back(window.name);
      windows.push_back(
          {&window, &p, found != ranks.end() ? std::to_string(*found->second.global) : other});
    }
  }
  for (const auto& name : names) {
    HostWindows(placed, std::move(by_name[name])).add_to(row_named(job.windows, name));
  }
}

void add_layers(std::span<const Placed> placed, Job& job) {
  for (const auto& p : placed) {
    const auto& activity = p.named->run.activity();
    if (!activity) continue;
    struct OfRecording {
      double joules = 0;
      double seconds = 0;
    };
    std::map<std::string, OfRecording> layers;
    for (const auto& profile : *activity) {
      for (const auto& row : profile.by_layer) {
        if (!row.energy) continue;
        JobLayer& out = row_named(job.layers, row.name);
        out.launches += row.launches;
        add(out.energy, *row.energy);
        OfRecording& own = layers[row.name];
        own.joules += row.energy->energy.joules();
        own.seconds += seconds(row.busy);
      }
    }
    const auto& own = p.profile->run.rank.global;
    const std::string where =
        own && p.named->run.recording().traces.size() < 2 ? std::to_string(*own) : p.named->name;
    for (const auto& [name, found] : layers) {
      JobLayer& out = row_named(job.layers, name);
      include(out.joules, found.joules, where);
      include(out.seconds, found.seconds, where);
    }
  }
}

void add_shares(std::span<const Placed> placed, const JobHost& host, const JobRules& rules,
                Job& job) {
  HostShares shares(placed, rules, job);
  for (const auto& domain : host.domains) shares.add(domain);
  shares.finish();
}

void finish_rows(Job& job) {
  const auto by_energy = [](const auto& a, const auto& b) {
    const auto joules = [](const auto& row) { return row.energy ? row.energy->energy : Energy{}; };
    return joules(a) > joules(b);
  };
  std::stable_sort(job.windows.begin(), job.windows.end(), by_energy);
  std::stable_sort(job.layers.begin(), job.layers.end(), by_energy);
  for (auto& window : job.windows) finish(window.joules), finish(window.seconds);
  for (auto& layer : job.layers) finish(layer.joules), finish(layer.seconds);
  std::sort(job.shares.begin(), job.shares.end(),
            [](const JobShare& a, const JobShare& b) { return a.job < b.job; });
  for (auto& share : job.shares) {
    std::set<std::uint32_t> ranks;
    for (const auto& rank : job.ranks) {
      if (rank.rank.global && rank.rank.job == share.job) ranks.insert(*rank.rank.global);
    }
    share.ranks = ranks.size();
  }
}

}  // namespace jouleprof::analysis
