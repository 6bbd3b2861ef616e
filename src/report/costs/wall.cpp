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

constexpr std::size_t kFewestPieces = 8;
constexpr std::size_t kMostPieces = 200;
constexpr double kShortestPiece = 5;  // seconds: a BMC's means are over a second or more

// Student's factor at 95 %, to 1 % from 4 degrees of freedom on.
double student95(double freedom) { return 1.96 + 2.45 / freedom + 2.5 / (freedom * freedom); }

// Sensors and meter over equal pieces of the time that the log covers. `shift` is added to the
// sensors' times to find the meter's.
Result<std::vector<WallPiece>> pieces_of(const analysis::Run& run, const model::Profile& profile,
                                         const Total& total, const model::WallLog& log,
                                         const WallEnergy& covered, Duration length,
                                         Duration shift) {
  std::vector<WallPiece> out;
  for (RealTime at = covered.begin; at + length <= covered.end; at += length) {
    if (at + shift < log.readings.front().at || at + shift + length > log.readings.back().at) {
      continue;
    }
    const auto wall = wall_energy(log, at + shift, at + shift + length);
    if (!wall) return forward_error(wall);
    const HostTime from = profile.begin + (at - profile.start_time);
    Energy sum;
    for (const auto* domain : total.counted) {
      const auto place = static_cast<std::size_t>(domain - profile.domains.data());
      const auto energy = run.energy(place, from, from + length);
      if (!energy) return forward_error(energy);
      sum += energy->energy;
    }
    out.push_back({(sum / length).watts(), (wall->energy / length).watts()});
  }
  return out;
}

// Of all lengths of the pieces and shifts of the meter's clock, the clearest.
Result<std::optional<WallSlope>> find_slope(const analysis::Run& run, const model::Profile& profile,
                                            const Total& total, const model::WallLog& log,
                                            const WallEnergy& covered) {
  const double whole = seconds(covered.end - covered.begin);
  double length = std::max({kShortestPiece, 2 * seconds(covered.longest_pause),
                            whole / static_cast<double>(kMostPieces)});
  std::optional<WallSlope> best;
  for (; whole / length >= static_cast<double>(kFewestPieces); length *= 2) {
    for (const double shift :
         {0.0, -0.5, 0.5, -1.0, 1.0, -2.0, 2.0, -5.0, 5.0, -10.0, 10.0, -20.0, 20.0}) {
      const auto pieces =
          pieces_of(run, profile, total, log, covered, duration_of(length), duration_of(shift));
      if (!pieces) return forward_error(pieces);
      auto slope = wall_slope(*pieces);
      // Between two readings a step is a line, and shifts are tried in steps of half a second:
      // where each piece ends at a step, so much of it is in the wrong piece.
      const double smeared = (seconds(covered.longest_pause) + 0.5) / length;
      if (slope) slope->error += std::abs(slope->ratio) * smeared;
      if (slope && (!best || slope->ratio * best->error > best->ratio * slope->error)) best = slope;
    }
  }
  return best;
}

}  // namespace

std::optional<WallSlope> wall_slope(const std::vector<WallPiece>& pieces) {
  const auto n = static_cast<double>(pieces.size());
  if (pieces.size() < kFewestPieces) return std::nullopt;
  double x = 0;
  double y = 0;
  WallSlope out;
  out.pieces = pieces.size();
  out.low = out.high = Power::watts(pieces.front().sensors);
  for (const auto& piece : pieces) {
    x += piece.sensors / n;
    y += piece.wall / n;
    out.low = std::min(out.low, Power::watts(piece.sensors));
    out.high = std::max(out.high, Power::watts(piece.sensors));
  }
  double xx = 0;
  double xy = 0;
  for (const auto& piece : pieces) {
    xx += (piece.sensors - x) * (piece.sensors - x);
    xy += (piece.sensors - x) * (piece.wall - y);
  }
  const double deviation = std::sqrt(xx / n);
  if (deviation < 5 || deviation < 0.05 * x) return std::nullopt;
  out.ratio = xy / xx;
  double squares = 0;
  double products = 0;
  double before = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double rest = pieces[i].wall - y - out.ratio * (pieces[i].sensors - x);
    squares += rest * rest;
    if (i > 0) products += rest * before;
    before = rest;
  }
  // Neighbours err alike: fans and the temperature change slowly.
  const double alike = squares > 0 ? std::clamp(products / squares, 0.0, 0.9) : 0;
  const double sigma = std::sqrt(squares / (n - 2) / xx * (1 + alike) / (1 - alike));
  out.error = student95(n - 2) * sigma;
  return out;
}

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
  const auto slope = find_slope(run, *profile, total, log, *wall);
  if (!slope) return forward_error(slope);
  out.slope = *slope;
  if (out.slope && !out.slope->follows()) {
    return fail(
        Errc::kCorrupt,
        fmt::format("{} does not follow this machine: one more watt at the sensors is {:.3f} "
                    "± {:.3f} W at the meter ({} to {} W, {} pieces of time). It is another "
                    "machine's, or its readings are stale",
                    log.file, out.slope->ratio, out.slope->error,
                    number_text(out.slope->low.watts()), number_text(out.slope->high.watts()),
                    out.slope->pieces));
  }
  return out;
}

std::vector<model::WallLog> recorded_walls(const analysis::Run& run) {
  const model::Recording& recording = run.recording();
  const auto& profile = run.profile();
  std::vector<model::WallLog> out;
  if (!profile || profile->start_time == RealTime{} || !profile->has_span()) return out;
  for (const auto& sensor : recording.sensors) {
    if (!sensor.name.starts_with("wall:")) continue;
    model::WallLog log;
    log.file = sensor.name.substr(sensor.name.find(':') + 1);
    log.format = "live";
    for (const auto& reading : recording.readings.powers) {
      if (reading.sensor != sensor.id) continue;
      log.readings.push_back(
          {profile->start_time + (reading.at - profile->begin), reading.power.watts()});
    }
    if (log.readings.size() >= 2) out.push_back(std::move(log));
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
