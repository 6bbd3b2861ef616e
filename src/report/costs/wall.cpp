#include "report/costs/wall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/job/job_sums.h"
#include "model/window_sum.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using Reading = model::WallLog::Reading;

double watts_at(const Reading& a, const Reading& b, RealTime t) {
  const double part = seconds(t - a.at) / seconds(b.at - a.at);
  return a.watts + part * (b.watts - a.watts);
}

WallComparison described(const model::WallLog& log) {
  WallComparison out;
  out.log = log;
  out.log.readings.clear();
  return out;
}

}  // namespace

std::optional<double> WallComparison::explained() const {
  if (!components || wall.energy <= Energy{}) return std::nullopt;
  return components->energy.joules() / wall.energy.joules();
}

Result<WallEnergy> wall_energy(const model::WallLog& log, RealTime begin, RealTime end) {
  const auto& all = log.readings;
  WallEnergy out;
  out.begin = all.empty() ? begin : std::max(begin, all.front().at);
  out.end = all.empty() ? begin : std::min(end, all.back().at);
  if (out.begin >= out.end) {
    return fail(Errc::kUnavailable,
                fmt::format("{} has no readings from {} to {}{}", log.file, utc_seconds_text(begin),
                            utc_seconds_text(end),
                            all.empty() ? ""
                                        : fmt::format("; it has readings from {} to {}",
                                                      utc_seconds_text(all.front().at),
                                                      utc_seconds_text(all.back().at))));
  }
  double joules = 0;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto& a = all[i];
    const auto& b = all[i + 1];
    const RealTime from = std::max(a.at, out.begin);
    const RealTime to = std::min(b.at, out.end);
    if (from >= to) continue;
    joules += (watts_at(a, b, from) + watts_at(a, b, to)) / 2 * seconds(to - from);
    out.longest_pause = std::max<Duration>(out.longest_pause, b.at - a.at);
  }
  out.energy = Energy::joules(joules);
  out.readings =
      static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Reading& r) {
        return r.at >= out.begin && r.at <= out.end;
      }));
  return out;
}

Result<WallComparison> compare_wall(const analysis::Run& run, const analysis::Part& part,
                                    const model::WallLog& log) {
  const auto& profile = run.profile(part);
  if (!profile) return forward_error(profile);
  if (profile->start_time == RealTime{} || !profile->has_span()) {
    return fail(
        Errc::kUnavailable,
        "the recording has no wall-clock time, so that a wall meter's log cannot be placed");
  }
  WallComparison out = described(log);
  const RealTime begin = profile->start_time;
  const auto wall = wall_energy(log, begin, begin + profile->duration());
  if (!wall) return forward_error(wall);
  out.wall = *wall;
  out.uncovered = profile->duration() - (wall->end - wall->begin);
  const Total total = total_of(*profile);
  const auto labels = labels_of(*profile);
  const HostTime from = profile->begin + (wall->begin - begin);
  const HostTime to = profile->begin + (wall->end - begin);
  for (const auto* domain : total.counted) {
    const auto place = static_cast<std::size_t>(domain - profile->domains.data());
    const auto energy = run.energy(place, from, to);
    if (!energy) return forward_error(energy);
    analysis::add(out.components, *energy);
    out.domains.push_back(labels.at(place));
  }
  return out;
}

Result<WallComparison> compare_wall(const analysis::Job& job, const std::string& host,
                                    const model::WallLog& log) {
  const auto found = std::find_if(job.hosts.begin(), job.hosts.end(),
                                  [&](const auto& h) { return h.host == host; });
  if (found == job.hosts.end()) {
    return fail(Errc::kNotFound,
                fmt::format("--wall {}={}: the job has no such machine", host, log.file));
  }
  if (!found->began) {
    return fail(Errc::kUnavailable, fmt::format("{} has no wall-clock time", host));
  }
  WallComparison out = described(log);
  out.host = host;
  const Duration length = found->end - found->begin;
  const auto wall = wall_energy(log, *found->began, *found->began + length);
  if (!wall) return forward_error(wall);
  out.wall = *wall;
  out.uncovered = length - (wall->end - wall->begin);
  // Energy of a part of the time is not known here.
  if (out.uncovered > Duration{} || found->covered != length) return out;
  out.components = found->total;
  for (const auto& domain : found->domains) {
    if (domain.is_counted && domain.energy) out.domains.push_back(domain.label);
  }
  return out;
}

}  // namespace jouleprof::report
