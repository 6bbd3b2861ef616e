#include "analysis/job/job_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/collectives/collectives.h"
#include "base/median.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kFewestCalls = 8;
// Within one, the drift that the line leaves is small against the bounds.
constexpr std::size_t kSegments = 8;
// Clocks within one machine, and rounding: bounds that cross by less are no contradiction.
constexpr double kTolerance = 200e-6;
constexpr double kOutlier = 5;  // median absolute deviations

// A difference of host times of two machines, which may have any epochs.
double difference(HostTime a, HostTime b) { return seconds(a - b); }

using Sequence = std::vector<const CollectiveCall*>;

bool has_collectives(const model::Recording& recording) {
  const auto is_one = [](const model::ActivityChunk& chunk) {
    return chunk.kind == model::ChunkKind::kCollectives;
  };
  return std::ranges::any_of(recording.traces, [&](const auto& trace) {
    return std::ranges::any_of(trace.chunks, is_one);
  });
}

// Adds the traces and the activity of a recording to others'. A GPU is the same in all of them.
class Gatherer {
 public:
  Gatherer(model::Recording& recording, std::vector<model::ActivityProfile>& activity)
      : recording_(recording), activity_(activity) {}

  // `shifted`: of its times.
  template <class Shift>
  void add(const model::Recording& more, std::span<const model::ActivityProfile> activity,
           const Shift& shifted) {
    const auto first = static_cast<std::uint32_t>(recording_.traces.size());
    std::map<model::DomainId, model::DomainId> ids;
    for (const auto& domain : more.domains) ids[domain.id] = id_of(domain);
    for (const auto& trace : more.traces) {
      auto& kept = recording_.traces.emplace_back(trace);
      std::erase_if(kept.chunks,
                    [](const auto& chunk) { return chunk.kind != model::ChunkKind::kCollectives; });
      for (auto& chunk : kept.chunks) {
        chunk.begin = shifted(chunk.begin);
        chunk.end = shifted(chunk.end);
      }
    }
    for (auto profile : activity) {
      profile.domain.id = ids[profile.domain.id];
      profile.begin = shifted(profile.begin);
      profile.end = shifted(profile.end);
      for (auto& process : profile.by_process) process.trace += first;
      activity_.push_back(std::move(profile));
    }
  }

 private:
  model::DomainId id_of(const model::Domain& domain) {
    for (const auto& known : recording_.domains) {
      if (!domain.uuid.empty() && known.uuid == domain.uuid && known.kind == domain.kind) {
        return known.id;
      }
    }
    auto& added = recording_.domains.emplace_back(domain);
    added.id = model::DomainId{static_cast<std::uint32_t>(recording_.domains.size() - 1)};
    added.parent.reset();
    return added.id;
  }

  model::Recording& recording_;
  std::vector<model::ActivityProfile>& activity_;
};

// Joins the ranks of a machine into one list of calls for each stream.
void join(const CollectiveCalls& calls, HostCalls& out) {
  std::vector<std::vector<Sequence>> ranks;
  for (const auto& rank : calls.ranks) {
    ranks.push_back(sequences_of(rank, out.recording.traces[rank.trace]));
    if (ranks.back().size() != ranks.front().size()) {
      out.problem = "its ranks ran collectives on different numbers of streams";
      return;
    }
  }
  for (std::size_t s = 0; !ranks.empty() && s < ranks[0].size(); ++s) {
    std::size_t common = ranks[0][s].size();
    for (const auto& rank : ranks) common = std::min(common, rank[s].size());
    auto& stream = out.streams.emplace_back();
    for (std::size_t n = 0; n < common; ++n) {
      HostCall call{{}, HostTime::min(), HostTime::max()};
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto& own = *ranks[r][s][n];
        const auto& classes = out.recording.traces[calls.ranks[r].trace].classes;
        const std::string_view kernel = classes[own.kernel_class].name;
        if (r > 0 && kernel != call.kernel) {
          out.problem = "its ranks ran different collectives";
          return;
        }
        call.kernel = kernel;
        call.latest_begin = std::max(call.latest_begin, own.begin);
        call.first_end = std::min(call.first_end, own.end);
      }
      stream.push_back(call);
    }
  }
}

// One operation on two machines: times in seconds since the first call on the reference.
struct Pair {
  double at = 0;
  double ends = 0;   // first end on the machine less that on the reference
  double lower = 0;  // bounds of the offset
  double upper = 0;
};

struct Line {
  double offset = 0;
  double drift = 0;
  double at(double t) const { return offset + drift * t; }
};

// Least squares; without drift where the calls lie too close.
Line least_squares(const std::vector<Pair>& pairs, const std::vector<bool>& used) {
  double n = 0, t = 0, y = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!used[i]) continue;
    n += 1, t += pairs[i].at, y += pairs[i].ends;
  }
  t /= n, y /= n;
  double tt = 0, ty = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!used[i]) continue;
    tt += (pairs[i].at - t) * (pairs[i].at - t);
    ty += (pairs[i].at - t) * (pairs[i].ends - y);
  }
  const double drift = tt > 0 ? ty / tt : 0;
  return {y - drift * t, drift};
}

// Ends that a process was interrupted at are no ends of a transfer.
std::vector<bool> without_outliers(const std::vector<Pair>& pairs, const Line& line) {
  std::vector<double> sizes;
  for (const auto& p : pairs) sizes.push_back(std::abs(p.ends - line.at(p.at)));
  const double middle = upper_median(sizes);
  std::vector<bool> used;
  for (const double size : sizes) used.push_back(size <= kOutlier * middle);
  return used;
}

}  // namespace

HostTime ClockLine::to_reference(HostTime t) const {
  return t - duration_of(offset + drift * seconds(t - from));
}

Result<std::optional<HostCalls>> host_calls(std::span<const Placed> placed) {
  std::optional<HostCalls> out;
  for (const auto& p : placed) {
    const auto& recording = p.named->run.recording();
    if (!has_collectives(recording)) continue;
    if (!out) {
      out.emplace();
      out->host = recording.run.host;
      out->boot_id = recording.run.boot_id;
      out->recording.clock_points = recording.clock_points;
    }
    const auto& activity = p.named->run.activity();
    Gatherer(out->recording, out->activity)
        .add(recording, activity ? *activity : std::vector<model::ActivityProfile>{},
             [](HostTime t) { return t; });
  }
  if (!out) return out;
  const auto calls = collective_calls(out->recording);
  if (!calls) return forward_error(calls);
  join(*calls, *out);
  return out;
}

Result<ClockLine> fit_clock(const HostCalls& reference, const HostCalls& host) {
  const auto no_match = [&](const std::string& why) {
    return fail(Errc::kUnavailable, fmt::format("{}: {}", host.host, why));
  };
  for (const auto* calls : {&reference, &host}) {
    if (!calls->problem.empty()) return no_match(calls->host + ": " + calls->problem);
  }
  if (reference.streams.size() != host.streams.size()) {
    return no_match("it ran collectives on another number of streams");
  }
  std::vector<Pair> pairs;
  HostTime from{};
  for (std::size_t s = 0; s < host.streams.size(); ++s) {
    const auto& a = reference.streams[s];
    const auto& b = host.streams[s];
    for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n) {
      if (a[n].kernel != b[n].kernel) return no_match("it ran other collectives");
      if (pairs.empty()) from = b[n].first_end;
      pairs.push_back({difference(b[n].first_end, from), difference(b[n].first_end, a[n].first_end),
                       difference(b[n].latest_begin, a[n].first_end),
                       difference(b[n].first_end, a[n].latest_begin)});
    }
  }
  if (pairs.size() < kFewestCalls) {
    return no_match(
        fmt::format("only {} collectives in common; {} are needed", pairs.size(), kFewestCalls));
  }
  Line line = least_squares(pairs, std::vector<bool>(pairs.size(), true));
  line = least_squares(pairs, without_outliers(pairs, line));
  ClockLine out{from, line.offset, line.drift, 0, 0, pairs.size()};
  std::ranges::sort(pairs, {}, &Pair::at);
  const std::size_t length = std::max<std::size_t>(kFewestCalls, pairs.size() / kSegments);
  for (std::size_t begin = 0; begin < pairs.size(); begin += length) {
    // The last segment has what is left, too.
    const std::size_t end = begin + 2 * length > pairs.size() ? pairs.size() : begin + length;
    double lower = -1e300;
    double upper = 1e300;
    for (std::size_t i = begin; i < end; ++i) {
      lower = std::max(lower, pairs[i].lower - line.at(pairs[i].at));
      upper = std::min(upper, pairs[i].upper - line.at(pairs[i].at));
    }
    if (lower > upper + kTolerance) {
      return no_match(
          "by their order, some collectives ended before all ranks had begun: groups "
          "of ranks, missing records, or a clock that changed its rate");
    }
    out.error = std::max({out.error, std::abs(lower), std::abs(upper)});
    if (end == pairs.size()) break;
  }
  double squares = 0;
  for (const auto& p : pairs) {
    const double residual = p.ends - line.at(p.at);
    squares += residual * residual;
  }
  out.residual = std::sqrt(squares / static_cast<double>(pairs.size()));
  return out;
}

Result<model::CollectiveProfile> collectives_of_job(std::span<const HostCalls> hosts,
                                                    std::span<const ClockLine> lines) {
  model::Recording all;
  std::vector<model::ActivityProfile> activity;
  Gatherer gatherer(all, activity);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    gatherer.add(hosts[h].recording, hosts[h].activity,
                 [&](HostTime t) { return h == 0 ? t : lines[h - 1].to_reference(t); });
  }
  return collectives_of(all, activity);
}

}  // namespace jouleprof::analysis
