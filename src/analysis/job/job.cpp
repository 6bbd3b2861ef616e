#include "analysis/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/job/job_clocks.h"
#include "analysis/job/job_sums.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;
using Named = JobBuilder::Named;

constexpr double kWallClockApart = 1;  // seconds; NTP keeps them within milliseconds

class HostBuilder {
 public:
  HostBuilder(std::span<const Placed> placed, JobHost& out) : placed_(placed), out_(out) {}

  Result<void> build() {
    cover();
    // A domain that one recording could not see may be visible to another.
    std::vector<DomainKey> known;
    for (const auto& [named, profile] : placed_) {
      for (const auto& d : profile->domains) {
        if (!d.domain.visible) continue;
        const DomainKey key = key_of(d.domain);
        if (std::ranges::find(known, key) != known.end()) continue;
        known.push_back(key);
        if (auto added = add_domain(key, is_counted(*profile, d.domain)); !added) return added;
      }
    }
    for (const auto& domain : out_.domains) {
      for (const auto& energy : {domain.energy, domain.least}) {
        const bool is_known = energy && energy->provenance != model::Provenance::kUnavailable;
        if (domain.is_counted && is_known) add(out_.total, *energy);
      }
      out_.is_partial = out_.is_partial || domain.is_partial();
    }
    return {};
  }

 private:
  // The union of the recordings' times.
  void cover() {
    HostTime until{};
    for (const auto& [named, profile] : placed_) {
      const bool is_first = out_.recordings.empty();
      out_.recordings.push_back(named->name);
      const HostTime from = is_first ? profile->begin : std::max(profile->begin, until);
      if (is_first || profile->begin < out_.begin) out_.begin = profile->begin;
      if (profile->end > from) out_.covered += profile->end - from;
      until = is_first ? profile->end : std::max(until, profile->end);
      out_.end = until;
      if (is_first && profile->start_time != RealTime{}) out_.began = profile->start_time;
      note_clock(named->run.recording());
    }
    note_sleep();
  }

  void note_clock(const model::Recording& recording) {
    const auto& points = recording.clock_points;
    if (points.empty()) return;
    const auto offset = [](const ClockPoint& p) {
      return p.real.time_since_epoch() - p.host.time_since_epoch() - p.suspended;
    };
    const auto [least, most] = std::ranges::minmax_element(
        points, [&](const auto& a, const auto& b) { return offset(a) < offset(b); });
    out_.clock_change = std::max<Duration>(out_.clock_change, offset(*most) - offset(*least));
  }

  // The steady clock stands still meanwhile. Time that the machine slept only grows.
  void note_sleep() {
    std::optional<Duration> least, most, before, after;
    for (const auto& placed : placed_) {
      for (const auto& p : placed.named->run.recording().clock_points) {
        least = std::min(least.value_or(p.suspended), p.suspended);
        most = std::max(most.value_or(p.suspended), p.suspended);
        if (p.host <= out_.begin) before = std::max(before.value_or(p.suspended), p.suspended);
        if (p.host >= out_.end) after = std::min(after.value_or(p.suspended), p.suspended);
      }
    }
    if (!least) return;
    const Duration slept = after.value_or(*most) - before.value_or(*least);
    if (slept > std::chrono::milliseconds{100}) out_.suspended = slept;
  }

  Result<void> add_domain(const DomainKey& key, bool counted) {
    JobDomain sum{key.label, key.identity, {}, "", false, counted, {}};
    std::optional<HostTime> until;
    HostTime recorded_until{};
    Duration without{};  // of the recordings of the domain, that in which it has no energy
    std::vector<const model::Profile*> covered;
    std::vector<std::pair<const Placed*, std::size_t>> lost;
    for (const auto& placed : placed_) {
      const auto& [named, profile] = placed;
      for (std::size_t i = 0; i < profile->domains.size(); ++i) {
        const auto& d = profile->domains[i];
        if (!d.domain.visible || key_of(d.domain) != key) continue;
        without += std::max(profile->end - std::max(recorded_until, profile->begin), Duration{});
        recorded_until = std::max(recorded_until, profile->end);
        if (!d.energy) {
          if (sum.reason.empty()) sum.reason = named->name + ": " + d.reason;
          if (d.least) lost.emplace_back(&placed, i);
          continue;
        }
        covered.push_back(profile);
        const HostTime from = until ? std::max(*until, profile->begin) : profile->begin;
        if (from >= profile->end) continue;
        auto energy = named->run.energy(i, from, profile->end);
        if (!energy) return forward_error(energy);
        add(sum.energy, *energy);
        without -= profile->end - from;
        until = profile->end;
      }
    }
    sum.lacks_time = sum.energy && without > Duration{};
    // Before the loss, in times that no recording with its energy and no earlier one of the loss
    // has.
    for (const auto& [placed, i] : lost) {
      const auto& [named, profile] = *placed;
      HostTime from = profile->begin;
      for (const auto* other : covered) {
        if (other->begin < profile->end) from = std::max(from, other->end);
      }
      if (from >= profile->end) continue;
      add(sum.least, least_from(*named, *profile, i, from));
      covered.push_back(profile);
    }
    out_.domains.push_back(std::move(sum));
    return {};
  }

  static model::Measurement least_from(const Named& named, const model::Profile& profile,
                                       std::size_t domain, HostTime from) {
    if (from == profile.begin) return *profile.domains[domain].least;
    model::Measurement none;
    none.provenance = model::Provenance::kUnavailable;
    const auto& rest = named.run.profile({.from = from - profile.begin, .to = {}});
    return rest ? rest->domains[domain].least.value_or(none) : none;
  }

  std::span<const Placed> placed_;
  JobHost& out_;
};

// The rows of one recording: one for each rank whose processes are known, by their traces or by the
// environment that they were started with, and one for all other processes under the recording's
// own number.
class RankRows {
 public:
  RankRows(const Named& named, const model::Profile& profile) : named_(named), profile_(profile) {}

  std::vector<JobRank> make() {
    for (const auto& d : profile_.domains) {
      if (d.domain.visible && is_counted(profile_, d.domain)) counted_[d.domain.id] = &d;
    }
    for (const auto& trace : named_.run.recording().traces) {
      if (!trace.rank.global) continue;
      traced_.try_emplace(trace.pid, trace.rank);
      row(trace.rank);
    }
    for (const auto& process : profile_.processes) add_process(process);
    for (const auto& use : named_.run.recording().process_readings.gpu_processes) {
      const auto domain = counted_.find(use.domain);
      const auto rank = by_process_.find(use.process);
      if (domain == counted_.end() || domain->second->energy || rank == by_process_.end()) continue;
      rank->second->without.insert(domain->second->domain.device);
    }
    add_kernels();
    add_collectives();
    if (rows_.empty()) row(profile_.run.rank);
    std::vector<JobRank> out;
    for (auto& [number, rank] : rows_) out.push_back(std::move(rank));
    return out;
  }

 private:
  JobRank& row(const model::Rank& rank) {
    const auto [place, is_new] = rows_.try_emplace(rank.global);
    if (is_new) {
      place->second.rank = rank;
      place->second.host = profile_.run.host;
      place->second.boot_id = profile_.run.boot_id;
      place->second.recording = named_.name;
      place->second.length = profile_.duration();
    }
    return place->second;
  }

  template <class T>
  static void add(std::optional<T>& sum, const std::optional<T>& more) {
    if (more) sum = sum.value_or(T{}) + *more;
  }

  void add_process(const model::ProcessProfile& process) {
    const auto& p = process.process;
    const auto found = traced_.find(p.own_pid.value_or(p.pid));
    JobRank& out = row(found != traced_.end() ? found->second
                       : p.rank.global        ? p.rank
                                              : profile_.run.rank);
    by_process_[p.id] = &out;
    add(out.cpu_time, process.cpu_time);
    for (const auto& share : process.shares) {
      const auto domain = counted_.find(share.domain);
      if (domain == counted_.end()) continue;
      // A rank's energy is dynamic: shares of all energy of a domain have no place in it.
      if (domain->second->shares_include_rest) {
        if (share.energy > Energy{}) out.without.insert(domain->second->domain.device);
        continue;
      }
      out.energy = out.energy.value_or(Energy{}) + share.energy;
      const auto bounds = share.bounds.value_or(model::DivisionBounds{share.energy, share.energy});
      out.bounds.low += bounds.low;
      out.bounds.high += bounds.high;
      add(out.held, share.held);
      add(out.kernels, share.kernels);
      add(out.idle_between, share.idle_between);
    }
  }

  // By index into the recording's traces; nullptr of one without a number.
  JobRank* row_of(std::uint32_t trace) {
    const auto found = rows_.find(named_.run.recording().traces[trace].rank.global);
    return found == rows_.end() || !found->first ? nullptr : &found->second;
  }

  void add_kernels() {
    const auto& activity = named_.run.activity();
    if (!activity) return;
    for (const auto& profile : *activity) {
      for (const auto& process : profile.by_process) {
        JobRank* rank = row_of(process.trace);
        if (rank != nullptr && profile.domain.kind == DomainKind::kGpu) {
          add(rank->kernel_time, std::optional(process.busy));
        }
      }
    }
  }

  void add_collectives() {
    const auto& collectives = named_.run.collectives();
    if (!collectives) return;
    for (const auto& found : collectives->ranks) {
      JobRank* rank = row_of(found.trace);
      if (rank == nullptr) continue;
      const Duration time = found.waiting + found.transfer + found.unsplit;
      if (rank->kernel_time) rank->kernel_time = std::max(*rank->kernel_time - time, Duration{});
      if (found.matched == 0) continue;
      add(rank->waiting, std::optional(found.waiting));
      add(rank->transfer, std::optional(found.transfer));
      if (found.waiting_energy) analysis::add(rank->waiting_energy, *found.waiting_energy);
      if (found.transfer_energy) analysis::add(rank->transfer_energy, *found.transfer_energy);
    }
    add_imbalance();
  }

  void add_imbalance() {
    double sum = 0;
    double ranks = 0;
    for (const auto& [number, rank] : rows_) {
      if (!rank.kernel_time) continue;
      sum += seconds(*rank.kernel_time);
      ++ranks;
    }
    if (ranks < 2 || sum <= 0) return;
    for (auto& [number, rank] : rows_) {
      if (rank.kernel_time) rank.imbalance = seconds(*rank.kernel_time) * ranks / sum - 1;
    }
  }

  const Named& named_;
  const model::Profile& profile_;
  std::map<model::DomainId, const model::DomainProfile*> counted_;
  std::map<model::ProcessId, JobRank*> by_process_;
  std::map<pid_t, model::Rank> traced_;
  std::map<std::optional<std::uint32_t>, JobRank> rows_;
};

// Of ranks that waited for ranks of other machines.
void set_collectives(const model::CollectiveProfile& found, std::vector<JobRank>& ranks) {
  for (auto& rank : ranks) {
    if (!rank.rank.global) continue;
    std::optional<Duration> waiting;
    std::optional<Duration> transfer;
    std::optional<model::Measurement> waiting_energy;
    std::optional<model::Measurement> transfer_energy;
    for (const auto& own : found.ranks) {
      if (own.rank.global != rank.rank.global || own.matched == 0) continue;
      waiting = waiting.value_or(Duration{}) + own.waiting;
      transfer = transfer.value_or(Duration{}) + own.transfer;
      if (own.waiting_energy) add(waiting_energy, *own.waiting_energy);
      if (own.transfer_energy) add(transfer_energy, *own.transfer_energy);
    }
    if (!waiting) continue;
    rank.waiting = waiting;
    rank.transfer = transfer;
    rank.waiting_energy = waiting_energy;
    rank.transfer_energy = transfer_energy;
  }
}

}  // namespace

// Of machines with collectives, as they were added.
struct JobBuilder::Clocks {
  std::vector<HostCalls> hosts;
};

JobBuilder::JobBuilder(JobRules rules) : rules_(rules), clocks_(std::make_unique<Clocks>()) {}
JobBuilder::JobBuilder(JobBuilder&&) noexcept = default;
JobBuilder& JobBuilder::operator=(JobBuilder&&) noexcept = default;
JobBuilder::~JobBuilder() = default;

// One GPU in two logs at the same time would count twice.
Result<void> JobBuilder::check_distinct(const JobHost& host) const {
  const auto is_log = [](const JobHost& h) { return h.names_no_machine && h.began; };
  for (const auto& other : job_.hosts) {
    if (!is_log(host) || !is_log(other)) continue;
    if (*host.began + (host.end - host.begin) <= *other.began) continue;
    if (*other.began + (other.end - other.begin) <= *host.began) continue;
    for (const auto& domain : host.domains) {
      const auto is_same = [&](const JobDomain& d) {
        return d.energy && d.identity == domain.identity;
      };
      const bool has_uuid = domain.identity != domain.label;
      if (!domain.energy || !has_uuid || std::ranges::none_of(other.domains, is_same)) continue;
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} and {} have the same GPU ({}) at the same time, and do not name "
                              "their machine: leave one of them out, or import the logs together",
                              other.host, host.host, domain.identity));
    }
  }
  return {};
}

Result<void> JobBuilder::add_host(const std::vector<Named>& recordings) {
  const auto& first = recordings.front().run.recording().run;
  std::vector<Placed> placed;
  for (const auto& named : recordings) {
    const auto& run = named.run.recording().run;
    if (run.boot_id != first.boot_id || (run.boot_id.empty() && run.host != first.host)) {
      return fail(Errc::kCorrupt, named.name + " is of another host or boot");
    }
    const auto& profile = named.run.profile();
    if (!profile) {
      return fail(profile.error().code, fmt::format("{}: {}", named.name, profile.error().message));
    }
    if (!profile->has_span()) {
      return fail(Errc::kUnavailable,
                  named.name + " holds windows of another tool only, without a time");
    }
    placed.push_back({&named, &*profile});
    for (auto& rank : RankRows(named, *profile).make()) job_.ranks.push_back(std::move(rank));
    census_.add(named.name, named.run.recording());
    if (!profile->run.complete) {
      job_.warnings.push_back(named.name + " was cut off before its end");
    }
  }
  std::ranges::stable_sort(placed, [](const Placed& a, const Placed& b) {
    return std::tie(a.profile->begin, a.profile->end, a.named->name) <
           std::tie(b.profile->begin, b.profile->end, b.named->name);
  });
  JobHost host;
  std::set<std::string> names;
  for (const auto& named : recordings) names.insert(named.run.recording().run.host);
  host.host = fmt::format("{}", fmt::join(names, " + "));
  host.names_no_machine = host.host.empty() && first.boot_id.empty();
  if (host.names_no_machine) host.host = recordings.front().name;
  if (first.boot_id.empty() && recordings.size() > 1) {
    job_.warnings.push_back(host.host +
                            ": recordings without a boot id; they are taken to be of one boot");
  }
  host.boot_id = first.boot_id;
  job_.recordings += recordings.size();
  if (auto built = HostBuilder(placed, host).build(); !built) return built;
  if (auto distinct = check_distinct(host); !distinct) return distinct;
  auto calls = host_calls(placed);
  if (!calls) return forward_error(calls);
  if (*calls) clocks_->hosts.push_back(std::move(**calls));
  add_windows(placed, job_);
  add_layers(placed, job_);
  add_shares(placed, host, rules_, job_);
  job_.hosts.push_back(std::move(host));
  return {};
}

// Puts the machines on one clock, where their collectives allow it.
void JobBuilder::align() {
  auto& hosts = clocks_->hosts;
  if (hosts.size() < 2) return;
  std::ranges::stable_sort(hosts, [](const HostCalls& a, const HostCalls& b) {
    return std::tie(a.host, a.boot_id) < std::tie(b.host, b.boot_id);
  });
  std::vector<ClockLine> lines;
  std::map<std::string, ClockLine> by_boot{{hosts[0].boot_id, ClockLine{}}};
  const ClockMap reference(hosts[0].recording.clock_points);
  for (std::size_t h = 1; h < hosts.size(); ++h) {
    const auto line = fit_clock(hosts[0], hosts[h]);
    if (!line) {
      job_.warnings.push_back("clocks are not aligned: " + line.error().message);
      return;
    }
    const ClockMap own(hosts[h].recording.clock_points);
    const Duration offset =
        own.to_real(line->from) - reference.to_real(line->to_reference(line->from));
    for (auto& host : job_.hosts) {
      if (host.boot_id != hosts[h].boot_id) continue;
      host.clock = {hosts[0].host, seconds(offset), line->drift,
                    line->error,   line->residual,  line->calls};
    }
    by_boot[hosts[h].boot_id] = *line;
    lines.push_back(*line);
  }
  if (const auto found = collectives_of_job(hosts, lines); found && found->has_split()) {
    set_collectives(*found, job_.ranks);
  }
  std::optional<HostTime> begin;
  std::optional<HostTime> end;
  for (const auto& host : job_.hosts) {
    const auto line = by_boot.find(host.boot_id);
    if (line == by_boot.end()) return;  // without collectives: wall clocks say when it ran
    begin = std::min(begin.value_or(HostTime::max()), line->second.to_reference(host.begin));
    end = std::max(end.value_or(HostTime::min()), line->second.to_reference(host.end));
  }
  job_.elapsed = *end - *begin;
  job_.is_aligned = true;
}

// After align(), which says better than wall clocks how far these are apart.
void JobBuilder::check_ranks() {
  std::set<std::string> aligned;
  for (const auto& host : job_.hosts) {
    if (!host.clock) continue;
    aligned.insert(host.boot_id);
    const double offset = host.clock->offset_seconds;
    if (std::abs(offset) < kWallClockApart) continue;
    job_.warnings.push_back(fmt::format(
        "the wall clock of {} is {:.1f} s {} that of {}, by {} collectives. Its times of day are "
        "wrong by as much, or those of {}; elapsed time and energies are not.",
        host.host, std::abs(offset), offset > 0 ? "ahead of" : "behind", host.clock->reference,
        host.clock->calls, host.clock->reference));
  }
  auto found = census_.finish(aligned);
  job_.rank_groups = std::move(found.groups);
  job_.warnings.insert(job_.warnings.end(), found.warnings.begin(), found.warnings.end());
}

// Before they are shown or sorted.
void JobBuilder::name_machines() {
  std::vector<std::pair<std::string, std::string>> machines;
  for (const auto& host : job_.hosts) machines.emplace_back(host.host, host.boot_id);
  const auto names = distinct_names(machines);
  const auto rename = [&](auto& named) {
    const auto known = names.find(named.boot_id);
    if (known != names.end()) named.host = known->second;
  };
  for (auto& host : job_.hosts) rename(host);
  for (auto& rank : job_.ranks) rename(rank);
  for (auto& host : clocks_->hosts) rename(host);
}

Job JobBuilder::finish() && {
  name_machines();
  std::ranges::stable_sort(job_.hosts, [](const JobHost& a, const JobHost& b) {
    return std::tie(a.host, a.boot_id) < std::tie(b.host, b.boot_id);
  });
  std::ranges::stable_sort(job_.ranks, [](const JobRank& a, const JobRank& b) {
    const auto number = [](const JobRank& r) { return r.rank.global.value_or(UINT32_MAX); };
    return std::tuple(number(a), a.host, a.recording) < std::tuple(number(b), b.host, b.recording);
  });
  finish_rows(job_);
  std::optional<RealTime> ended;
  bool all_timed = true;
  for (const auto& host : job_.hosts) {
    if (host.suspended > Duration{}) {
      job_.warnings.push_back(
          fmt::format("{}: the machine was suspended for {:.1f} s; that time is not in any energy",
                      host.host, seconds(host.suspended)));
    }
    if (host.total) add(job_.total, *host.total);
    job_.is_partial = job_.is_partial || host.is_partial;
    for (const auto& domain : host.domains) {
      if (domain.is_counted && !domain.energy) ++job_.without_energy;
    }
    if (!host.began) {
      all_timed = false;
      continue;
    }
    const RealTime end = *host.began + (host.end - host.begin) + host.suspended;
    job_.began = std::min(job_.began.value_or(*host.began), *host.began);
    ended = std::max(ended.value_or(end), end);
    const Duration gap = (host.end - host.begin) - host.covered;
    if (gap > Duration{}) {
      job_.warnings.push_back(fmt::format(
          "{}: {:.3f} s between its recordings were not recorded; their energy is missing",
          host.host, seconds(gap)));
    }
  }
  if (job_.command) {
    job_.command->is_partial = job_.is_partial;
    if (job_.command->is_unknown()) job_.command.reset();
  }
  const auto without_machine =
      std::ranges::count_if(job_.hosts, [](const auto& h) { return h.names_no_machine; });
  if (without_machine > 1) {
    job_.warnings.push_back(fmt::format(
        "{} recordings do not name their machine, such as logs of other tools: each counts as one "
        "of its own. A device without a UUID that is in several at the same time counts as often: "
        "import their logs together",
        without_machine));
  }
  if (all_timed && job_.began) job_.elapsed = *ended - *job_.began;
  align();
  check_ranks();
  return std::move(job_);
}

}  // namespace jouleprof::analysis
