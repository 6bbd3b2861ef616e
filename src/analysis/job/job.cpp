#include "analysis/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;
using model::Measurement;
using Named = JobBuilder::Named;

bool contains_others(DomainKind kind) {
  return kind == DomainKind::kPlatform || kind == DomainKind::kModule;
}

bool is_part(const model::Profile& profile, const model::Domain& domain) {
  if (!domain.parent) return false;
  return std::none_of(profile.domains.begin(), profile.domains.end(), [&](const auto& other) {
    return other.domain.id == *domain.parent && contains_others(other.domain.kind);
  });
}

bool is_counted(const model::Profile& profile, const model::Domain& domain) {
  return !is_part(profile, domain) && !contains_others(domain.kind);
}

std::string label_of(const model::Domain& domain) {
  const bool is_plain = domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu;
  return is_plain ? domain.device
                  : std::string(model::to_string(domain.kind)) + " " + domain.device;
}

// Adds `m` to `sum`. Errors add linearly, as if all sensors erred to one side.
void add(std::optional<Measurement>& sum, const Measurement& m) {
  if (!sum) {
    sum = m;
    return;
  }
  const double gain = model::gain_joules(*sum) + model::gain_joules(m);
  sum->energy += m.energy;
  sum->repeatability += m.repeatability;
  sum->error = Energy::joules(std::hypot(sum->repeatability.joules(), gain));
  sum->provenance = model::combine(sum->provenance, m.provenance);
  if (sum->sensor != m.sensor) sum->sensor += " + " + m.sensor;
  if (sum->method != m.method) sum->method += " + " + m.method;
}

// A recording of the host, with its place among the others in the order of time.
struct Placed {
  const Named* named;
  const model::Profile* profile;
};

class HostBuilder {
 public:
  HostBuilder(std::vector<Placed> placed, JobHost& out) : placed_(std::move(placed)), out_(out) {}

  Result<void> build() {
    cover();
    // A domain that one recording could not see may be visible to another.
    std::vector<std::pair<std::string, std::string>> known;
    for (const auto& [named, profile] : placed_) {
      for (const auto& d : profile->domains) {
        if (!d.domain.visible) continue;
        const std::string label = label_of(d.domain);
        const std::pair key(label, d.domain.uuid.empty() ? label : d.domain.uuid);
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        known.push_back(key);
        if (auto added = add_domain(key, is_counted(*profile, d.domain)); !added) return added;
      }
    }
    for (const auto& domain : out_.domains) {
      if (domain.is_counted && domain.energy) add(out_.total, *domain.energy);
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
  }

  void note_clock(const model::Recording& recording) {
    const auto& points = recording.clock_points;
    if (points.empty()) return;
    const auto offset = [](const ClockPoint& p) {
      return p.real.time_since_epoch() - p.host.time_since_epoch();
    };
    const auto [least, most] =
        std::minmax_element(points.begin(), points.end(),
                            [&](const auto& a, const auto& b) { return offset(a) < offset(b); });
    out_.clock_change = std::max<Duration>(out_.clock_change, offset(*most) - offset(*least));
  }

  Result<void> add_domain(const std::pair<std::string, std::string>& key, bool counted) {
    JobDomain sum{key.first, key.second, {}, "", counted};
    std::optional<HostTime> until;
    for (const auto& [named, profile] : placed_) {
      for (std::size_t i = 0; i < profile->domains.size(); ++i) {
        const auto& d = profile->domains[i];
        const std::string label = label_of(d.domain);
        if (!d.domain.visible || label != key.first ||
            (d.domain.uuid.empty() ? label : d.domain.uuid) != key.second) {
          continue;
        }
        if (!d.energy) {
          if (sum.reason.empty()) sum.reason = named->name + ": " + d.reason;
          continue;
        }
        const HostTime from = until ? std::max(*until, profile->begin) : profile->begin;
        if (from >= profile->end) continue;
        auto energy = named->run.energy(i, from, profile->end);
        if (!energy) return forward_error(energy);
        add(sum.energy, *energy);
        until = profile->end;
      }
    }
    out_.domains.push_back(std::move(sum));
    return {};
  }

  std::vector<Placed> placed_;
  JobHost& out_;
};

// Rows of one recording: one for each traced process that has a number of its own, and one for all
// other processes under the recording's own number.
std::vector<JobRank> ranks_of(const Named& named, const model::Profile& profile) {
  const auto row = [&](const model::Rank& rank) {
    JobRank made;
    made.rank = rank;
    made.host = profile.run.host;
    made.recording = named.name;
    made.length = profile.duration();
    return made;
  };
  std::map<model::DomainId, bool> counted;
  for (const auto& d : profile.domains) counted[d.domain.id] = is_counted(profile, d.domain);
  JobRank own = row(profile.run.rank);
  bool any_own = false;
  std::map<pid_t, JobRank> traced;
  for (const auto& trace : named.run.recording().traces) {
    if (trace.rank.global) traced.try_emplace(trace.pid, row(trace.rank));
  }
  for (const auto& process : profile.processes) {
    const auto found = traced.find(process.process.own_pid.value_or(process.process.pid));
    JobRank& out = found == traced.end() ? own : found->second;
    any_own = any_own || found == traced.end();
    if (process.cpu_time) out.cpu_time = out.cpu_time.value_or(Duration{}) + *process.cpu_time;
    for (const auto& share : process.shares) {
      if (counted[share.domain]) out.energy = out.energy.value_or(Energy{}) + share.energy;
    }
  }
  std::vector<JobRank> rows;
  for (auto& [pid, rank] : traced) rows.push_back(std::move(rank));
  if (any_own || rows.empty()) rows.push_back(std::move(own));
  return rows;
}

}  // namespace

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
    for (auto& rank : ranks_of(named, *profile)) job_.ranks.push_back(std::move(rank));
    if (!profile->run.complete) {
      job_.warnings.push_back(named.name + " was cut off before its end");
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.profile->begin, a.profile->end, a.named->name) <
           std::tie(b.profile->begin, b.profile->end, b.named->name);
  });
  JobHost host;
  std::set<std::string> names;
  for (const auto& named : recordings) names.insert(named.run.recording().run.host);
  host.host = fmt::format("{}", fmt::join(names, " + "));
  if (first.boot_id.empty() && recordings.size() > 1) {
    job_.warnings.push_back(host.host +
                            ": recordings without a boot id; they are taken to be of one boot");
  }
  host.boot_id = first.boot_id;
  job_.recordings += recordings.size();
  if (auto built = HostBuilder(std::move(placed), host).build(); !built) return built;
  job_.hosts.push_back(std::move(host));
  return {};
}

Job JobBuilder::finish() && {
  std::stable_sort(job_.hosts.begin(), job_.hosts.end(), [](const JobHost& a, const JobHost& b) {
    return std::tie(a.host, a.boot_id) < std::tie(b.host, b.boot_id);
  });
  std::stable_sort(job_.ranks.begin(), job_.ranks.end(), [](const JobRank& a, const JobRank& b) {
    const auto number = [](const JobRank& r) { return r.rank.global.value_or(UINT32_MAX); };
    return std::tuple(number(a), a.host, a.recording) < std::tuple(number(b), b.host, b.recording);
  });
  std::optional<RealTime> ended;
  bool all_timed = true;
  for (const auto& host : job_.hosts) {
    if (host.total) add(job_.total, *host.total);
    for (const auto& domain : host.domains) {
      if (domain.is_counted && !domain.energy) ++job_.without_energy;
    }
    if (!host.began) {
      all_timed = false;
      continue;
    }
    const RealTime end = *host.began + (host.end - host.begin);
    job_.began = std::min(job_.began.value_or(*host.began), *host.began);
    ended = std::max(ended.value_or(end), end);
    const Duration gap = (host.end - host.begin) - host.covered;
    if (gap > Duration{}) {
      job_.warnings.push_back(fmt::format(
          "{}: {:.3f} s between its recordings were not recorded; their energy is missing",
          host.host, seconds(gap)));
    }
  }
  if (all_timed && job_.began) job_.elapsed = *ended - *job_.began;
  return std::move(job_);
}

}  // namespace jouleprof::analysis
