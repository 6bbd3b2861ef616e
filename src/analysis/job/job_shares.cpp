// What each of several jobs is charged with.
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "analysis/energy_split.h"
#include "analysis/job/job_sums.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using model::DomainKind;

constexpr Duration kOneStart = 50ms;  // of a process, by several readings of it

// The processes of a host, by pid. Each recorder reads their starts by its own clock.
struct KnownProcess {
  HostTime start{};
  HostTime until{};  // the end of the last recording that has it
};
using KnownProcesses = std::multimap<pid_t, KnownProcess>;

template <class Known>
auto find_process(Known& known, const model::Process& process) {
  const auto [begin, end] = known.equal_range(process.pid);
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    return std::chrono::abs(entry.second.start - process.start) < kOneStart;
  });
  return found == end ? known.end() : found;
}

struct Span {
  HostTime begin;
  HostTime end;
};

// Takes the time of `profile` from `open`; the spans that were taken.
std::vector<Span> take(std::vector<Span>& open, const model::Profile& profile) {
  std::vector<Span> taken;
  std::vector<Span> rest;
  for (const Span& span : open) {
    const HostTime begin = std::max(span.begin, profile.begin);
    const HostTime end = std::min(span.end, profile.end);
    if (end <= begin) {
      rest.push_back(span);
      continue;
    }
    taken.push_back({begin, end});
    if (span.begin < begin) rest.push_back({span.begin, begin});
    if (end < span.end) rest.push_back({end, span.end});
  }
  open = std::move(rest);
  return taken;
}

std::vector<Span> all_time() { return {{HostTime::min(), HostTime::max()}}; }

const model::DomainProfile* find_domain(const model::Profile& profile, const DomainKey& key) {
  const auto found = std::ranges::find_if(profile.domains, [&](const auto& d) {
    return d.domain.visible && d.energy && key_of(d.domain) == key;
  });
  return found == profile.domains.end() ? nullptr : &*found;
}

// Recordings of one job that list each other's processes on GPUs, as of one family: a recorder of
// each rank. Each is analysed with the processes of all of them as its command's, and of each board
// and time one of them decides.
class Family {
 public:
  explicit Family(const std::vector<const Placed*>& placed) {
    for (const Placed* one : placed) {
      for (const auto& p : one->named->run.recording().processes) {
        if (p.in_tree) own_.emplace(p.pid, KnownProcess{p.start, {}});
      }
    }
    for (const Placed* one : placed) {
      const Run& run = one->named->run;
      const auto& processes = run.recording().processes;
      const bool lists_others =
          std::ranges::any_of(processes, [&](const auto& p) { return !p.in_tree && is_own(p); });
      if (!lists_others) {
        runs_.push_back(&run);
        continue;
      }
      model::Recording joined = run.recording();
      for (auto& p : joined.processes) p.in_tree = p.in_tree || is_own(p);
      runs_.push_back(&joined_.emplace_back(std::move(joined)));
    }
  }

  bool is_joined() const { return !joined_.empty(); }

  // In parts that do not overlap. Of recordings of one time one that traced kernels there decides.
  std::vector<const model::Profile*> parts_of(const DomainKey& key) const {
    std::vector<const model::Profile*> out;
    std::vector<Span> open = all_time();
    for (const bool with_trace : {true, false}) {
      for (const Run* run : runs_) {
        const auto& whole = run->profile();
        if (!whole || !find_domain(*whole, key) || has_trace(*run, key) != with_trace) continue;
        for (const Span& span : take(open, *whole)) {
          Part part;
          if (span.begin > whole->begin) part.from = span.begin - whole->begin;
          if (span.end < whole->end) part.to = span.end - whole->begin;
          if (const auto& profile = run->profile(part)) out.push_back(&*profile);
        }
      }
    }
    return out;
  }

 private:
  bool is_own(const model::Process& p) const { return find_process(own_, p) != own_.end(); }

  static bool has_trace(const Run& run, const DomainKey& key) {
    const auto& activity = run.activity();
    return activity &&
           std::ranges::any_of(*activity, [&](const auto& a) { return key_of(a.domain) == key; });
  }

  KnownProcesses own_;
  std::deque<Run> joined_;
  std::vector<const Run*> runs_;  // in the order of time
};

// Charges the domains of one host to its jobs.
class HostShares {
 public:
  HostShares(std::span<const Placed> placed, const JobRules& rules, Job& job)
      : placed_(placed), rules_(rules), job_(job) {
    std::map<std::string, std::vector<const Placed*>> by_job;
    for (const auto& p : placed) {
      by_job[p.profile->run.rank.job].push_back(&p);
      OfJob& of_job = jobs_[p.profile->run.rank.job];
      ++of_job.recordings;
      const HostTime from =
          of_job.until ? std::max(*of_job.until, p.profile->begin) : p.profile->begin;
      if (p.profile->end > from) of_job.recorded += p.profile->end - from;
      of_job.until = std::max(of_job.until.value_or(p.profile->end), p.profile->end);
    }
    for (const auto& [name, of_job] : by_job) {
      if (of_job.size() > 1) families_.try_emplace(name, of_job);
    }
    std::erase_if(families_, [](const auto& family) { return !family.second.is_joined(); });
  }

  void add(const JobDomain& domain) {
    if (!domain.is_counted || !domain.energy) return;
    const std::vector<Seen> seen = recordings_of({domain.label, domain.identity});
    const bool is_parallel =
        std::ranges::any_of(seen, [](const Seen& one) { return one.overlaps; });
    model::CommandEnergy own;
    Energy others;
    Energy left = domain.energy->energy;
    std::map<std::string, Energy> dynamic;
    KnownProcesses counted;
    for (const auto& one : seen) {
      const Energy shares = one.is_whole ? one.domain->command->processes
                                         : dynamic_of(*one.profile, one.domain->domain.id, counted);
      // Of which process it is need not be known; of concurrent recordings it is counted once.
      const bool counts = !one.is_whole && !one.follows;
      const Energy within = counts ? one.domain->within_command.value_or(Energy{}) : Energy{};
      dynamic[one.job] += shares + within;
      OfJob& of_job = jobs_[one.job];
      of_job.knows_rest = of_job.knows_rest || one.domain->idle_part;
      of_job.has_unknown_rest =
          of_job.has_unknown_rest || (!one.domain->idle_part && shares + within > Energy{});
      own.processes += shares + within;
      // Of recordings of one time it is not known whether others are another recording's commands.
      if (!one.overlaps) others += one.domain->others.value_or(Energy{});
      left -= one.rest;
    }
    left -= own.processes + others;
    // Each of several recordings of one time divides by itself.
    const Energy excess = std::max(-left, Energy{});
    if (const Energy less = std::min(excess, own.processes); is_parallel && less > Energy{}) {
      reduce(dynamic, own.processes, less);
      own.processes -= less;
      left += less;
    }
    for (const auto& [job, energy] : dynamic) jobs_[job].dynamic += energy;
    charge_rest(own, domain, seen, is_parallel, left);
    job_.others += others;
    job_.undivided += left;
    own.undivided = std::max(left, Energy{});
    set_command(own, domain, seen, is_parallel, others, excess);
  }

  void finish() {
    for (const auto& [name, of_job] : jobs_) {
      const auto found = std::ranges::find(job_.shares, name, &JobShare::job);
      JobShare& share = found != job_.shares.end() ? *found : job_.shares.emplace_back();
      share.job = name;
      ++share.hosts;
      share.recordings += of_job.recordings;
      share.recorded += of_job.recorded;
      share.dynamic += of_job.dynamic;
      share.rest += of_job.rest;
      share.knows_rest = share.knows_rest || of_job.knows_rest;
      share.has_unknown_rest = share.has_unknown_rest || of_job.has_unknown_rest;
    }
  }

 private:
  struct OfJob {
    std::size_t recordings = 0;
    Duration recorded{};
    std::optional<HostTime> until;
    Energy dynamic;
    Energy rest;
    bool knows_rest = false;
    bool has_unknown_rest = false;
  };

  // Without processes that another recording has at the same time.
  static Energy dynamic_of(const model::Profile& profile, model::DomainId domain,
                           KnownProcesses& seen) {
    Energy sum;
    for (const auto& process : profile.processes) {
      auto known = find_process(seen, process.process);
      if (known == seen.end()) {
        known = seen.emplace(process.process.pid, KnownProcess{process.process.start, {}});
      } else if (profile.begin < known->second.until) {
        continue;
      }
      known->second.until = profile.end;
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

  // The rest of each time belongs to the first that covers it: to the first of those whose command
  // has it, where there is one.
  std::vector<Seen> recordings_of(const DomainKey& key) const {
    std::vector<Seen> seen;
    const auto add = [&](const model::Profile& profile) {
      const auto* d = find_domain(profile, key);
      if (d == nullptr) return;
      Seen one{&profile, d, profile.run.rank.job, {}, d->command && !d->command->is_divided};
      for (Seen& other : seen) {
        if (other.profile->begin >= profile.end || profile.begin >= other.profile->end) continue;
        other.overlaps = one.overlaps = one.follows = true;
      }
      seen.push_back(std::move(one));
    };
    std::set<std::string> joined;
    for (const auto& p : placed_) {
      const auto& job = p.profile->run.rank.job;
      const auto family = families_.find(job);
      const auto* d = find_domain(*p.profile, key);
      if (d == nullptr) continue;
      if (family == families_.end() || d->domain.kind != DomainKind::kGpu) {
        add(*p.profile);
      } else if (joined.insert(job).second) {
        for (const auto* part : family->second.parts_of(key)) add(*part);
      }
    }
    std::vector<Span> open = all_time();
    for (const bool with_rest : {true, false}) {
      for (Seen& one : seen) {
        if (has_rest(one) != with_rest) continue;
        double taken = 0;
        for (const Span& span : take(open, *one.profile)) taken += seconds(span.end - span.begin);
        const double all = seconds(one.profile->duration());
        // A command's rest is smaller where kernels' energies exceed what is above rest, and none
        // where all energy is the command's and only rest and held together are known.
        const Energy rest = with_rest || one.is_whole ? one.domain->command->rest.value_or(Energy{})
                                                      : one.domain->idle_part.value_or(Energy{});
        one.rest = taken == all ? rest : Energy::joules(rest.joules() * taken / all);
      }
    }
    return seen;
  }

  // Takes `energy` from the jobs' parts of `all`, in proportion to them.
  static void reduce(std::map<std::string, Energy>& parts, Energy all, Energy energy) {
    Energy taken;
    for (auto& [job, part] : parts) {
      const Energy less = Energy::joules(energy.joules() * (part.joules() / all.joules()));
      part -= less;
      taken += less;
    }
    parts.begin()->second -= energy - taken;
  }

  // Charges the jobs with energy at rest. `left`: above rest, of no job and no other process.
  void charge_rest(model::CommandEnergy& own, const JobDomain& domain,
                   const std::vector<Seen>& seen, bool is_parallel, Energy left) {
    // Others of a recording may be a concurrent one's commands.
    const bool is_used = is_used_by_others(left, *domain.energy);
    own.rest = Energy{};
    std::vector<const Seen*> charged;
    for (const auto& one : seen) {
      const Energy share = charged_rest(seen, one, is_parallel && !is_used);
      if (share > Energy{} || has_rest(one)) charged.push_back(&one);
      if (!is_parallel) jobs_[one.job].rest += share;
      job_.not_charged += one.rest - share;
      *own.rest += share;
    }
    if (is_parallel) divide(*own.rest, charged);
    if (charged.empty()) own.rest.reset();
  }

  // Of the energy at rest in a recording's part of the time, what its job is charged with.
  Energy charged_rest(const std::vector<Seen>& all, const Seen& one, bool may_be_own) const {
    const bool is_alone = std::ranges::all_of(all, [&](const Seen& s) { return s.job == one.job; });
    const bool is_machine = one.domain->domain.kind != DomainKind::kGpu;
    if (is_machine && rules_.machine_share && is_alone) {
      return Energy::joules(one.rest.joules() * *rules_.machine_share);
    }
    if (has_rest(one)) return one.rest;
    return is_alone && may_be_own && one.domain->command ? one.rest : Energy{};
  }

  // Adds what the jobs have of a domain, with its interval.
  void set_command(model::CommandEnergy& own, const JobDomain& domain,
                   const std::vector<Seen>& seen, bool is_parallel, Energy others, Energy excess) {
    std::optional<model::CommandEnergy> sum;
    for (const auto& one : seen) {
      if (one.domain->command) model::add(sum, *one.domain->command);
    }
    if (!sum) return;
    own.is_divided = is_parallel || sum->is_divided;
    if (is_parallel) {
      set_interval(own, *domain.energy, others, excess, excess);
    } else {
      // Each recording's interval holds what it leaves open.
      const Energy energy = own.processes + own.rest.value_or(Energy{});
      own.undivided = sum->undivided;
      own.energy = sum->energy;
      own.energy.energy = energy;
      if (energy > Energy{}) {
        own.energy.shift *= sum->energy.energy.joules() / energy.joules();
      }
    }
    model::add(job_.command, own);
  }

  // Among the jobs of these recordings, by recorded time; the last one has what rounding leaves.
  void divide(Energy energy, const std::vector<const Seen*>& recordings) {
    std::vector<OfJob*> jobs;
    double time = 0;
    for (const Seen* one : recordings) {
      OfJob* job = &jobs_[one->job];
      if (std::ranges::find(jobs, job) != jobs.end()) continue;
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
  std::map<std::string, Family> families_;
};

}  // namespace

void add_shares(std::span<const Placed> placed, const JobHost& host, const JobRules& rules,
                Job& job) {
  HostShares shares(placed, rules, job);
  for (const auto& domain : host.domains) shares.add(domain);
  shares.finish();
}

}  // namespace jouleprof::analysis
