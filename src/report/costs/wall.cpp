#include "report/costs/wall.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/job/job_sums.h"
#include "analysis/timeline/sensors/counter.h"
#include "base/median.h"
#include "model/window_sum.h"
#include "report/costs/costs.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using Reading = model::WallLog::Reading;

const std::string kWallSensor = "wall:";
constexpr std::string_view kLive = "live";

double watts_at(const Reading& a, const Reading& b, RealTime t) {
  const double part = seconds(t - a.at) / seconds(b.at - a.at);
  return a.watts + part * (b.watts - a.watts);
}

constexpr Duration kMostBetween = std::chrono::minutes{5};     // readings, of any meter
constexpr Duration kAlwaysBetween = std::chrono::seconds{10};  // of every meter
constexpr int kMediansBetween = 5;

// How far two readings of the log may be apart for power to be on the line through them.
Duration most_between(const std::vector<Reading>& readings) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    distances.push_back(readings[i].at - readings[i - 1].at);
  }
  if (distances.empty()) return kAlwaysBetween;
  return std::clamp(kMediansBetween * upper_median(std::move(distances)), kAlwaysBetween,
                    kMostBetween);
}

// `most`: what most_between() says of the log.
Result<WallEnergy> wall_energy(const model::WallLog& log, RealTime begin, RealTime end,
                               Duration most) {
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
  WallEnergy stretch{.begin = out.begin, .end = out.begin, .energy = {}};
  WallEnergy longest = stretch;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto& a = all[i];
    const auto& b = all[i + 1];
    const RealTime from = std::max(a.at, out.begin);
    const RealTime to = std::min(b.at, out.end);
    if (from >= to) continue;
    if (b.at - a.at > most) {
      stretch = {.begin = to, .end = to, .energy = {}};
      joules = 0;
      continue;
    }
    joules += (watts_at(a, b, from) + watts_at(a, b, to)) / 2 * seconds(to - from);
    stretch.end = to;
    stretch.energy = Energy::joules(joules);
    stretch.longest_pause = std::max<Duration>(stretch.longest_pause, b.at - a.at);
    if (stretch.end - stretch.begin > longest.end - longest.begin) longest = stretch;
  }
  if (longest.end == longest.begin) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{} has no reading for {} from {} on; readings of its meter are at most "
                    "{} apart where power between them is known",
                    log.file, duration_text(out.end - out.begin), utc_seconds_text(out.begin),
                    duration_text(most)));
  }
  out = longest;
  out.readings = static_cast<std::size_t>(std::ranges::count_if(
      all, [&](const Reading& r) { return r.at >= out.begin && r.at <= out.end; }));
  return out;
}

WallComparison described(const model::WallLog& log) {
  WallComparison out;
  out.log = log;
  out.log.readings.clear();
  return out;
}

// Sensors and meter over equal pieces of the time that the log covers. `shift` is added to the
// sensors' times to find the meter's.
Result<std::vector<WallPiece>> pieces_of(const analysis::Run& run, const model::Profile& profile,
                                         const Total& total, const model::WallLog& log,
                                         const WallEnergy& covered, Duration length,
                                         Duration shift) {
  const Duration most = most_between(log.readings);
  std::vector<WallPiece> out;
  for (RealTime at = covered.begin; at + length <= covered.end; at += length) {
    if (at + shift < log.readings.front().at || at + shift + length > log.readings.back().at) {
      continue;
    }
    const auto wall = wall_energy(log, at + shift, at + shift + length, most);
    if (!wall || wall->end - wall->begin < length) continue;  // a gap of the log
    const HostTime from = profile.begin + (at - profile.start_time);
    const auto sensors = energy_between(run, profile, total, from, from + length);
    if (!sensors) return forward_error(sensors);
    out.push_back({(*sensors / length).watts(), (wall->energy / length).watts()});
  }
  return out;
}

// Half of the 95 % interval of a meter that was read during the run, in parts of its energy over
// [from, to]: its scale, and what it missed between its readings. Errors: as Run::energy's.
Result<std::optional<double>> error_of(const analysis::Run& run, const model::Profile& profile,
                                       const model::WallLog& log, HostTime from, HostTime to) {
  for (const auto& sensor : run.recording().sensors) {
    if (log.format != kLive || sensor.name != kWallSensor + log.file) continue;
    for (std::size_t i = 0; i < profile.domains.size(); ++i) {
      if (profile.domains[i].domain.id != sensor.domain) continue;
      const auto energy = run.energy(i, from, to);
      if (!energy) return forward_error(energy);
      if (energy->energy <= Energy{}) return std::nullopt;
      return energy->farthest().joules() / energy->energy.joules();
    }
  }
  return log.error;
}

Result<std::optional<WallSlope>> find_slope(const analysis::Run& run, const model::Profile& profile,
                                            const Total& total, const model::WallLog& log,
                                            const WallEnergy& covered) {
  return analysis::clearest_slope(
      covered.end - covered.begin, covered.longest_pause, [&](Duration length, Duration shift) {
        return pieces_of(run, profile, total, log, covered, length, shift);
      });
}

}  // namespace

std::optional<double> WallComparison::explained() const {
  if (!components || wall.energy <= Energy{}) return std::nullopt;
  return components->energy.joules() / wall.energy.joules();
}

Result<WallEnergy> wall_energy(const model::WallLog& log, RealTime begin, RealTime end) {
  return wall_energy(log, begin, end, most_between(log.readings));
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
  const auto error = error_of(run, *profile, log, from, to);
  if (!error) return forward_error(error);
  out.log.error = *error;
  for (const auto* domain : total.counted) {
    const auto place = static_cast<std::size_t>(domain - profile->domains.data());
    const auto energy = run.energy(place, from, to);
    if (!energy) return forward_error(energy);
    analysis::add(out.components, *energy);
    out.domains.push_back(labels.at(place));
  }
  for (const auto& excluded : total.excluded) {
    const auto& domain = *excluded.domain;
    if (domain.energy || contains_others(domain.domain.kind)) continue;
    out.missing.push_back(labels.at(static_cast<std::size_t>(&domain - profile->domains.data())));
  }
  const auto slope = find_slope(run, *profile, total, log, *wall);
  if (!slope) return forward_error(slope);
  out.slope = *slope;
  if (out.slope && !out.slope->follows()) {
    return fail(Errc::kCorrupt,
                fmt::format("{} {}", log.file, analysis::does_not_follow(*out.slope)));
  }
  return out;
}

std::vector<model::WallLog> recorded_walls(const analysis::Run& run) {
  const model::Recording& recording = run.recording();
  const auto& profile = run.profile();
  std::vector<model::WallLog> out;
  if (!profile || profile->start_time == RealTime{} || !profile->has_span()) return out;
  for (const auto& sensor : recording.sensors) {
    if (!sensor.name.starts_with(kWallSensor)) continue;
    model::WallLog log;
    log.file = sensor.name.substr(kWallSensor.size());
    log.format = kLive;
    for (const auto& reading : recording.readings.powers) {
      if (reading.sensor != sensor.id || reading.power > analysis::kAbsurdPower) continue;
      log.readings.push_back(
          {profile->start_time + (reading.at - profile->begin), reading.power.watts()});
    }
    // As the domain's timeline: a machine that draws power does not draw 0 W for a moment.
    const auto draws = [](const Reading& r) { return r.watts > 5; };
    if (std::ranges::any_of(log.readings, draws)) {
      std::erase_if(log.readings, [](const Reading& r) { return r.watts == 0; });
    }
    if (log.readings.size() >= 2) out.push_back(std::move(log));
  }
  return out;
}

Result<std::optional<WallComparison>> wall_of(const analysis::Run& run, const analysis::Part& part,
                                              const std::optional<model::WallLog>& given) {
  if (given) {
    auto made = compare_wall(run, part, *given);
    if (!made) return forward_error(made);
    return std::move(*made);
  }
  for (const auto& log : recorded_walls(run)) {
    if (auto made = compare_wall(run, part, log)) return std::move(*made);
  }
  return std::nullopt;
}

Result<WallComparison> compare_wall(const analysis::Job& job, const std::string& host,
                                    const model::WallLog& log) {
  const auto found = std::ranges::find(job.hosts, host, &analysis::JobHost::host);
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
